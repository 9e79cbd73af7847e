"""Which tests a test file holds, read from its source. Pure.

The list is made before anything runs, so no answer can add, remove or rename a test.
"""

import ast
from typing import Literal

Mark = Literal["", "skip", "maybe"]
"""What the task's source says of a test: nothing, skipped, or skipped on a condition."""


def is_test_file(name: str) -> bool:
    """Whether a file holds tests, by pytest's rule for names."""
    base = name.rsplit("/", 1)[-1]
    return base.endswith(".py") and (base.startswith("test_") or base.endswith("_test.py"))


def list_tests(name: str, source: str) -> list[str]:
    """Return the ids of a file's tests, in its order: `file::Class::method`, `file::function`.

    ValueError if the file does not parse.
    """
    return list(marked_tests(name, source))


def marked_tests(name: str, source: str, module: str = "solution") -> dict[str, Mark]:
    """Return the ids of a file's tests with what the file marks them as. ValueError if the file does not parse.

    A condition that speaks of the answer's `module` is no mark: the answer could meet it.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"{name}: {error}") from None
    theirs = _names_of(tree, module)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    of_file = _worst(_pytestmark(tree.body), theirs)
    found: dict[str, Mark] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found.setdefault(f"{name}::{node.name}", of_file or _worst(node.decorator_list, theirs))
        elif isinstance(node, ast.ClassDef) and _holds_tests(node, classes):
            of_class = of_file or _worst([*node.decorator_list, *_pytestmark(node.body)], theirs)
            for method, marks in _methods(node, classes).items():
                found.setdefault(f"{name}::{node.name}::{method}", of_class or _worst(marks, theirs))
    return found


def _worst(marks: list[ast.expr], theirs: frozenset[str]) -> Mark:
    """What marks come to: `skip` whatever happens, `maybe` where a condition decides that is not the answer's."""
    found: Mark = ""
    for mark in marks:
        call = mark.func if isinstance(mark, ast.Call) else mark
        last = call.attr if isinstance(call, ast.Attribute) else call.id if isinstance(call, ast.Name) else ""
        if last == "skip":
            return "skip"
        if last in ("skipIf", "skipUnless", "skipif"):
            spoken = {node.id for node in ast.walk(mark) if isinstance(node, ast.Name)}
            found = found if spoken & theirs else "maybe"
    return found


def _pytestmark(body: list[ast.stmt]) -> list[ast.expr]:
    for node in body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "pytestmark" for target in node.targets):
            return list(node.value.elts) if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
    return []


def _names_of(tree: ast.Module, module: str) -> frozenset[str]:
    """Names through which a file can speak of the answer, also by way of its own names."""
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
            spoken = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            if spoken & names:
                names |= {
                    one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
                }
                names |= {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()
    return frozenset(names)


def uses_pytest(source: str) -> bool:
    """Whether a file needs pytest to run: it imports it, or its plain tests have fixtures."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(name.name.split(".")[0] == "pytest" for name in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pytest":
            return True
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test")
        and bool(node.args.args)
        for node in tree.body
    )


def _holds_tests(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    if node.name.startswith("Test"):
        return True
    for base in node.bases:
        name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
        if name.endswith("TestCase") or (
            name in classes and classes[name] is not node and _holds_tests(classes[name], classes)
        ):
            return True
    return False


def _methods(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> dict[str, list[ast.expr]]:
    """Test methods with their decorators, inherited ones first."""
    found: dict[str, list[ast.expr]] = {}
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes and classes[base.id] is not node:
            found |= _methods(classes[base.id], classes)
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test"):
            found[item.name] = item.decorator_list
    return found
