"""Which tests a test file holds, read from its source. Pure.

The list is made before anything runs, so no answer can add, remove or rename a test.
"""

import ast

from sandbox.graders.marks import MarkReader, Marks


def is_test_file(name: str) -> bool:
    """Whether a file holds tests, by pytest's rule for names."""
    base = name.rsplit("/", 1)[-1]
    return base.endswith(".py") and (base.startswith("test_") or base.endswith("_test.py"))


def marked_tests(name: str, source: str, module: str = "solution") -> dict[str, Marks]:
    """Return the ids of a file's tests, in its order, with what the file marks them as.

    An id is `file::Class::method` or `file::function`. ValueError if the file does not parse.
    module: the name by which the file imports the answer.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"{name}: {error}") from None
    reader = MarkReader(tree, module)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    of_file = _pytestmark(tree.body)
    found: dict[str, Marks] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found.setdefault(f"{name}::{node.name}", reader.read([*of_file, *node.decorator_list]))
        elif isinstance(node, ast.ClassDef) and _holds_tests(node, classes):
            of_class = [*of_file, *_marks_of_class(node, classes)]
            for method, marks in _methods(node, classes).items():
                found.setdefault(f"{name}::{node.name}::{method}", reader.read([*of_class, *marks]))
    return found


def _marks_of_class(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.expr]:
    """A class's marks, and those of its bases: both unittest and pytest have them inherited."""
    found = [*node.decorator_list, *_pytestmark(node.body)]
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes and classes[base.id] is not node:
            found += _marks_of_class(classes[base.id], classes)
    return found


def _pytestmark(body: list[ast.stmt]) -> list[ast.expr]:
    for node in body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "pytestmark" for target in node.targets):
            return list(node.value.elts) if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
    return []


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
