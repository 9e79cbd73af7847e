"""What a test file says of its own tests: skipped, or expected to fail, and on whose condition. Pure.

Read from the source before anything runs. A condition is the host's only where nothing in it is within an answer's
reach: Python's version and platform, whether a module or program is there, and names made of such. A file in a
shared folder, an environment variable or a module of the answer's may be the answer's doing.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Condition = Literal["never", "host", "answer", "unclear", "always"]
"""never: not marked; host: this machine decides; answer: the answer does; unclear: it might. The later one counts."""
_ORDER: list[Condition] = ["never", "host", "answer", "unclear", "always"]
_SKIPS = {"skip": True, "skipIf": False, "skipUnless": False, "skipif": False}
_XFAILS = frozenset(("expectedFailure", "xfail"))
_FACTS = (
    "importlib.util.find_spec os.cpu_count os.name platform. shutil.which sys.byteorder sys.hexversion "
    "sys.implementation sys.maxsize sys.platform sys.version"
)
_OF_HOST = tuple(_FACTS.split())
_BUILTINS = frozenset(("all", "any", "bool", "int", "len", "max", "min", "str", "tuple"))
_PLAIN = ast.BoolOp | ast.boolop | ast.UnaryOp | ast.unaryop | ast.BinOp | ast.operator | ast.Compare | ast.cmpop
_PARTS = _PLAIN | ast.IfExp | ast.Subscript | ast.Slice | ast.Tuple | ast.List | ast.Set | ast.expr_context


@dataclass(frozen=True)
class Marks:
    """When a test is skipped, and when it is expected to fail."""

    skip: Condition = "never"
    xfail: Condition = "never"


class MarkReader:
    """Reads the marks of one file, whose answer is imported as `module`."""

    def __init__(self, tree: ast.Module, module: str) -> None:
        self._answers = _names_of_answer(tree, module)
        self._assigned = _assigned_once(tree)
        self._host = self._names_of_host(tree, module)

    def read(self, decorators: Iterable[ast.expr]) -> Marks:
        """Read decorators, or the items of `pytestmark`."""
        skip: Condition = "never"
        xfail: Condition = "never"
        for mark in decorators:
            if isinstance(mark, ast.Name) and mark.id in self._assigned:
                mark = self._assigned[mark.id]
            call = mark.func if isinstance(mark, ast.Call) else mark
            last = call.attr if isinstance(call, ast.Attribute) else call.id if isinstance(call, ast.Name) else ""
            if last in _SKIPS:
                skip = later(skip, "always" if _SKIPS[last] else self._condition(mark))
            elif last == "parametrize":
                inner = self.read(_of_parameters(mark))  # they are of some parameters, so the test itself stays
                skip, xfail = later(skip, _of_some(inner.skip)), later(xfail, _of_some(inner.xfail))
            elif last in _XFAILS:
                conditional = last == "xfail" and any(True for _ in _conditions(mark))
                xfail = later(xfail, self._condition(mark) if conditional else "always")
        return Marks(skip, xfail)

    def _condition(self, mark: ast.expr) -> Condition:
        found: Condition = "host"
        for one in _conditions(mark):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):  # pytest runs it
                try:
                    one = ast.parse(one.value, mode="eval").body
                except SyntaxError:
                    return "unclear"
            names = {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}
            decided = "answer" if names & self._answers else "host" if self._is_hosts(one) else "unclear"
            found = later(found, decided)
        return found

    def _names_of_host(self, tree: ast.Module, module: str) -> frozenset[str]:
        """Globals that nothing but the machine decides: made of its facts, or of whether an import works."""
        self._host: frozenset[str] = frozenset()
        found: set[str] = set()
        for node in tree.body:
            stored = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
            if isinstance(node, ast.Assign) and self._is_hosts(node.value):
                found |= stored
            elif isinstance(node, ast.Try) and not (stored | _imported(node)) & self._answers:
                found |= stored | _imported(node) if all(map(self._only_imports, _statements(node))) else set()
            else:
                found -= stored
            self._host = frozenset(found)
        return self._host - self._answers - {module.partition(".")[0]}

    def _only_imports(self, node: ast.stmt) -> bool:
        constant = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        return constant or isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)

    def _is_hosts(self, node: ast.AST) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return name in self._host
            case ast.Call(func=function, args=arguments, keywords=named):
                by_name = isinstance(function, ast.Name) and function.id in _BUILTINS
                known = by_name or (isinstance(function, ast.Attribute) and self._is_hosts(function))
                return known and all(map(self._is_hosts, [*arguments, *(one.value for one in named)]))
            case ast.Attribute(value=value):
                return ast.unparse(node).startswith(_OF_HOST) or self._is_hosts(value)
            case _:
                return isinstance(node, _PARTS) and all(map(self._is_hosts, ast.iter_child_nodes(node)))


def later(one: Condition, other: Condition) -> Condition:
    """Which of two conditions counts."""
    return max(one, other, key=_ORDER.index)


def _conditions(mark: ast.expr) -> Iterator[ast.expr]:
    """What a mark depends on: all but its reason and the like."""
    if isinstance(mark, ast.Call):
        last = mark.func.attr if isinstance(mark.func, ast.Attribute) else getattr(mark.func, "id", "")
        yield from mark.args[:1] if last in ("skipIf", "skipUnless") else mark.args
        yield from (one.value for one in mark.keywords if one.arg in ("condition", None))


def _of_parameters(mark: ast.expr) -> Iterator[ast.expr]:
    """The marks of single parameters: `pytest.param(…, marks=…)`."""
    for node in ast.walk(mark):
        if isinstance(node, ast.keyword) and node.arg == "marks":
            yield from node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]


def _of_some(condition: Condition) -> Condition:
    return "host" if condition == "always" else condition


def _assigned_once(tree: ast.Module) -> dict[str, ast.expr]:
    """Marks that have a name: `needs_net = unittest.skipUnless(…)`."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.Attribute):
            found |= {one.id: node.value for one in node.targets if isinstance(one, ast.Name)}
    return found


def _statements(node: ast.Try) -> Iterator[ast.stmt]:
    yield from (*node.body, *node.orelse, *node.finalbody)
    for handler in node.handlers:
        yield from handler.body


def _imported(tree: ast.AST) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {one.asname or one.name.partition(".")[0] for node in nodes for one in node.names}


def _names_of_answer(tree: ast.Module, module: str) -> frozenset[str]:
    """Names through which a file speaks of the answer, also by way of its own names."""
    names = {module.partition(".")[0]}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == module:
            names |= {one.asname or one.name for one in node.names}
        elif isinstance(node, ast.Import):
            names |= {one.asname or one.name.partition(".")[0] for one in node.names if one.name == module}
    for _ in range(2):
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                continue
            spoken = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | _imported(node)
            if spoken & names:
                names |= {
                    one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
                }
                names |= {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()
    return frozenset(names)
