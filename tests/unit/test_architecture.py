"""The house as its imports show it: who may import whom, who may load what, and how long anything may be."""

import ast
import graphlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
MAY_IMPORT = {
    "schemas": "",
    "wire": "schemas",
    "sandbox": "schemas",
    "tasks": "schemas sandbox",
    "streams": "schemas wire sandbox tasks",
    "learner": "schemas wire",
    "headwater": "schemas wire sandbox tasks streams learner",
}
ROOMS = [f"streams.{room}" for room in ("scheduler", "rollout", "grading", "collect")]
# what must not be loaded when a module of this package is
NOT_LOADED_BY = {
    "tasks": {"torch", "aiokafka", "faust"},
    "sandbox": {"torch", "aiokafka", "faust"},
    "learner.book": {"torch"},
    "headwater": {"torch", "faust"},
}
FILE_LINES, CLASS_LINES, FUNCTION_LINES, MEDIAN_FILE_LINES = 400, 250, 80, 130


@cache
def _files() -> dict[str, Path]:
    """Module name → file, of every module of ours."""
    paths = {path.relative_to(ROOT): path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py")}
    return {
        ".".join(relative.with_suffix("").parts).removesuffix(".__init__"): path for relative, path in paths.items()
    }


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_files()[module].read_text(encoding="utf-8"))


@cache
def _imports(module: str, *, at_import: bool = False) -> frozenset[str]:
    """What a module imports anywhere in it, or only what it imports while it is imported itself."""
    found: set[str] = set()
    for node in _at_import(_tree(module)) if at_import else ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = module.split(".")[: -node.level] if node.level else []
            source = ".".join([*up, *([node.module] if node.module else [])])
            names = {f"{source}.{alias.name}" for alias in node.names}
            found |= (names & _files().keys()) | ({source} if names - _files().keys() else set())
    return frozenset(found)


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _at_import(node)


def _loaded(module: str) -> set[str]:
    """Every module that is loaded when this one is imported, its packages included."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [name.rpartition(".")[0]] if "." in name else []
            waiting += _imports(name, at_import=True) if name in _files() else ()
    return seen


def _inside(module: str, packages: list[str]) -> str | None:
    return next((package for package in packages if module == package or module.startswith(package + ".")), None)


def _of_imports() -> Iterator[str]:
    for module in _files():
        package, _, _ = module.partition(".")
        for imported in _imports(module):
            of = imported.partition(".")[0]
            if of in MAY_IMPORT and of != package and of not in MAY_IMPORT[package].split():
                yield f"{module} imports {imported}"
            if of in ("aiokafka", "faust") and package != "wire":
                yield f"{module} imports {of}"
            room, other = _inside(module, ROOMS), _inside(imported, ROOMS)
            if room and other and room != other:
                yield f"{module} imports {imported}"


def _of_loading() -> Iterator[str]:
    for package, barred in NOT_LOADED_BY.items():
        for module in _files():
            if _inside(module, [package]):
                yield from (f"{module} loads {name}" for name in _loaded(module) & barred)


def _of_circles() -> Iterator[str]:
    graph = {module: set(_imports(module) & _files().keys()) for module in _files()}
    while True:
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            circle: list[str] = error.args[1]
            yield "circle: " + ", ".join(sorted(set(circle)))
            graph[circle[1]].discard(circle[0])
        else:
            return


def _of_lengths() -> Iterator[str]:
    kinds = {ast.ClassDef: ("class", CLASS_LINES), ast.FunctionDef: ("function", FUNCTION_LINES)}
    kinds[ast.AsyncFunctionDef] = kinds[ast.FunctionDef]
    lines = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in _files().items()}
    yield from (f"{module} is past {FILE_LINES} lines" for module, count in lines.items() if count > FILE_LINES)
    if median(lines.values()) > MEDIAN_FILE_LINES:
        yield f"the median file is past {MEDIAN_FILE_LINES} lines"
    for module in _files():
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                kind, most = kinds[type(node)]
                if (node.end_lineno or 0) - node.lineno + 1 > most:
                    yield f"{kind} {module}.{node.name} is past {most} lines"


def test_the_rules_of_the_house_hold() -> None:
    found = {*_of_imports(), *_of_loading(), *_of_circles(), *_of_lengths()}
    assert sorted(found) == [], "these break a rule of the house"
