"""What a test's source uses that stand-ins may not show: there a failure says nothing before it is looked into. Pure.

Read from the task's own source alone, so no answer decides it.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

_MODULES = {
    "asyncio": "asyncio",
    "contextvars": "context variables",
    "copy": "copies",
    "ctypes": "ctypes",
    "dataclasses": "dataclasses",
    "functools": "functools",
    "gc": "the garbage collector",
    "importlib": "importlib",
    "inspect": "inspect",
    "io": "streams",
    "logging": "logging",
    "mock": "patches",
    "multiprocessing": "processes",
    "os": "the process's environment and files",
    "pathlib": "files",
    "pickle": "pickle",
    "random": "seeds",
    "shutil": "files",
    "signal": "signals",
    "socket": "sockets",
    "sqlite3": "databases",
    "subprocess": "processes",
    "sys": "the interpreter's state",
    "tempfile": "temporary files",
    "threading": "threads",
    "time": "time",
    "tracemalloc": "memory",
    "types": "types of the interpreter",
    "typing": "annotations",
    "unittest.mock": "patches",
    "warnings": "warnings",
    "weakref": "weak references",
}
_PLAIN = frozenset(("unittest", "pytest", "math", "string", "itertools", "operator", "__future__"))
"""Modules that tests use on plain data alone."""
_FIXTURES = frozenset(
    ("caplog", "capfd", "capsys", "monkeypatch", "mocker", "recwarn", "tmp_path", "tmp_path_factory", "tmpdir")
)
_METHODS = frozenset(("assertLogs", "assertNoLogs", "assertWarns", "assertWarnsRegex", "warns", "deprecated_call"))
_CALLS = frozenset(
    ("delattr", "dir", "globals", "hasattr", "id", "input", "isinstance", "issubclass", "open", "setattr", "super")
) | {"type", "vars"}
_CONSTANTS = (ast.Constant,)


def unseen(sources: Iterable[str]) -> str | None:
    """Name the first thing that some source uses and stand-ins may not show; None where there is none."""
    for source in sources:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        for found in _used(tree):
            return found
        if any(isinstance(node, ast.FunctionDef) and _hands_and_looks(node) for node in ast.walk(tree)):
            return "what an answer keeps of its arguments"
        if any(isinstance(node, ast.FunctionDef) and _compares_made(node) for node in ast.walk(tree)):
            return "an object of the answer's that equals plain data"
    return None


def _hands_and_looks(function: ast.FunctionDef) -> bool:
    """Whether a list, dict or set is made, handed over, and looked at again: what keeps it may change it later."""
    made = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Dict | ast.Set | ast.ListComp)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    uses = Counter(
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    return any(uses[name] > 1 for name in made)


def _compares_made(function: ast.FunctionDef) -> bool:
    """Whether what calling a class has made is compared with a constant: only the object itself could say."""
    made = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _makes(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(
        any(_makes(one) or (isinstance(one, ast.Name) and one.id in made) for one in pair)
        and any(isinstance(one, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set) for one in pair)
        for pair in _compared(function)
    )


def _makes(node: ast.expr) -> bool:
    name = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return name[:1].isupper()


def _compared(tree: ast.AST) -> Iterator[list[ast.expr]]:
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
                yield [left, *node.comparators]
            case ast.Call(func=ast.Attribute(attr="assertEqual" | "assertNotEqual"), args=[one, other, *_]):
                yield [one, other]
            case _:
                pass


def _used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (told for one in names if (told := _module(one.name)))
            case ast.ImportFrom(module=str(module)) if told := _module(module):
                yield told
            case ast.ImportFrom(module="unittest", names=names) if any(one.name == "mock" for one in names):
                yield "patches"
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                yield "async"
            case ast.FunctionDef(args=arguments) if any(one.arg in _FIXTURES for one in arguments.args):
                yield next(one.arg for one in arguments.args if one.arg in _FIXTURES)
            case ast.ClassDef(name=name, bases=bases) if _is_no_test(name, bases):
                yield f"a class of its own, {name}"
            case ast.Compare(ops=ops, comparators=others) if _identity(ops, others):
                yield "identity (`is`)"
            case ast.Attribute(attr=name) if name in _METHODS or (name.startswith("__") and name.endswith("__")):
                yield f"`{name}`"
            case ast.Attribute(attr="assertIsInstance" | "assertNotIsInstance" as name):
                yield f"`{name}`"
            case ast.Call(func=ast.Attribute(attr="assertIs" | "assertIsNot" as name), args=arguments) if not any(
                isinstance(one, _CONSTANTS) for one in arguments
            ):
                yield f"`{name}`"
            case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
                yield f"`{name}`"
            case ast.Yield() | ast.Lambda():
                yield "functions that the answer calls back"
            case _:
                pass


def _module(name: str) -> str | None:
    """What a module of Python's own stands for; None for those on plain data, and those of others."""
    top = name.partition(".")[0]
    if name in _MODULES or top in _MODULES:
        return _MODULES.get(name) or _MODULES[top]
    return f"`{top}`" if top in sys.stdlib_module_names and top not in _PLAIN else None


def _is_no_test(name: str, bases: list[ast.expr]) -> bool:
    ours = name.startswith("Test") or any("Test" in ast.unparse(base) for base in bases)
    return not ours


def _identity(ops: list[ast.cmpop], others: list[ast.expr]) -> bool:
    return any(
        isinstance(op, ast.Is | ast.IsNot) and not isinstance(other, _CONSTANTS)
        for op, other in zip(ops, others, strict=True)
    )
