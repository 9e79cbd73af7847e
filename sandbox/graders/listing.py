"""Which tests a test file holds, read from its source. Pure.

The list is made before anything runs, so no answer can add, remove or rename a test.
"""

import ast


def is_test_file(name: str) -> bool:
    """Whether a file holds tests, by pytest's rule for names."""
    base = name.rsplit("/", 1)[-1]
    return base.endswith(".py") and (base.startswith("test_") or base.endswith("_test.py"))


def list_tests(name: str, source: str) -> list[str]:
    """Return the ids of a file's tests, in its order: `file::Class::method`, `file::function`.

    ValueError if the file does not parse.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"{name}: {error}") from None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found.append(f"{name}::{node.name}")
        elif isinstance(node, ast.ClassDef) and _holds_tests(node, classes):
            found += [f"{name}::{node.name}::{method}" for method in _methods(node, classes)]
    return list(dict.fromkeys(found))


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


def _methods(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[str]:
    own = [
        item.name
        for item in node.body
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test")
    ]
    inherited = [
        method
        for base in node.bases
        if isinstance(base, ast.Name) and base.id in classes and classes[base.id] is not node
        for method in _methods(classes[base.id], classes)
    ]
    return list(dict.fromkeys(inherited + own))
