"""What a block of an answer takes from the blocks before it: imports and helpers that it does not have itself. Pure."""

import ast
import builtins
from collections.abc import Iterator, Sequence

_MAX_CHARACTERS = 200_000


def completed(program: str, earlier: Sequence[str]) -> str:
    """Put before a program those statements of earlier blocks that make the names which it lacks."""
    if not earlier or len(program) + sum(map(len, earlier)) > _MAX_CHARACTERS:
        return program
    tree = _parsed(program)
    if tree is None:
        return program
    missing = _lacking(tree)
    for text in reversed(earlier):
        other = _parsed(text) if missing else None
        for node in reversed(other.body if other else []):
            made = set(_made(node))
            if made & missing:
                program = f"{ast.unparse(node)}\n{program}"
                missing = (missing - made) | _lacking(ast.Module([node], []))
    return program


def _parsed(program: str) -> ast.Module | None:
    try:
        return ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _lacking(tree: ast.Module) -> set[str]:
    """Names that are used, and made nowhere in it."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return used - {name for node in ast.walk(tree) for name in _made(node)} - set(dir(builtins))


def _made(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        case ast.Assign(targets=targets):
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case _:
            pass
