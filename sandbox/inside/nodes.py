"""LeetCode's lists and trees: built of plain lists where a function's parameters say so, and read back to them."""

from collections import deque
from typing import Any

MAX_NODES = 1 << 20


class ListNode:
    """A node of a linked list, as LeetCode gives it."""

    def __init__(self, val: Any = 0, next: Any = None) -> None:
        self.val = val
        self.next = next


class TreeNode:
    """A node of a binary tree, as LeetCode gives it."""

    def __init__(self, val: Any = 0, left: Any = None, right: Any = None) -> None:
        self.val = val
        self.left = left
        self.right = right


KINDS = ("ListNode", "TreeNode")


class Endless(Exception):
    """A list or tree that comes back to a node of its own, or has more than MAX_NODES."""


def kind_of(annotation: object) -> "tuple[str, bool] | None":
    """Read a parameter's annotation: (which node, whether in a list of them); None for no node."""
    if annotation is None:
        return None
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if text not in KINDS:
        text = str(annotation)
    for kind in KINDS:
        if kind in text:
            return kind, "list[" in text.lower().split(kind)[0]
    return None


def build(value: Any, kind: "tuple[str, bool]", make: Any) -> Any:
    """Make nodes of a plain list (a tree's level by level, None for no child); None and [] make None."""
    name, many = kind
    if many:
        return [build(one, (name, False), make) for one in value]
    if not value:
        return None
    return _list(value, make) if name == "ListNode" else _tree(value, make)


def _list(values: "list[Any]", make: Any) -> Any:
    head = None
    for value in reversed(values):
        node = make(value)
        node.next, head = head, node
    return head


def _tree(values: "list[Any]", make: Any) -> Any:
    root = make(values[0])
    waiting, rest = deque([root]), iter(values[1:])
    while waiting:
        node = waiting.popleft()
        for side in ("left", "right"):
            value = next(rest, None)
            if value is not None:
                setattr(node, side, make(value))
                waiting.append(getattr(node, side))
    return root


def plain(value: Any) -> Any:
    """Read nodes, also within lists, back to plain lists; all else stays as it is. Endless."""
    kind = type(value).__name__
    if kind == "ListNode" and hasattr(value, "next"):
        return _list_back(value)
    if kind == "TreeNode" and hasattr(value, "left"):
        return _tree_back(value)
    if type(value) is list:
        return [plain(one) for one in value]
    return value


def _list_back(node: Any) -> "list[Any]":
    values: list[Any] = []
    seen: set[int] = set()
    while node is not None:
        if id(node) in seen or len(seen) > MAX_NODES:
            raise Endless("a linked list without an end")
        seen.add(id(node))
        values.append(node.val)
        node = node.next
    return values


def _tree_back(root: Any) -> "list[Any]":
    values: list[Any] = []
    seen: set[int] = set()
    level = deque([root])
    while level:
        node = level.popleft()
        if node is None:
            values.append(None)
            continue
        if id(node) in seen or len(seen) > MAX_NODES:
            raise Endless("a tree that comes back to a node of its own")
        seen.add(id(node))
        values.append(node.val)
        level += (node.left, node.right)
    while values and values[-1] is None:
        values.pop()
    return values
