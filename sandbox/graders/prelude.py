"""What an answer finds in its module before it runs: names that the task gives. Pure."""

import ast
import re
import sys
from collections.abc import Mapping

_NODES = ".nodes"
"""Of `inside/`."""


def _of(module: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), module)


TYPING: Mapping[str, str] = _of(
    "typing",
    "Any Callable DefaultDict Deque Dict FrozenSet Generator Generic Iterable Iterator List Literal Mapping NamedTuple "
    "Optional Sequence Set Tuple Type TypeVar Union",
)
LEETCODE: Mapping[str, str] = {
    **TYPING,
    **_of("", "bisect collections copy datetime functools heapq itertools math operator random re string sys"),
    **_of("collections", "ChainMap Counter OrderedDict defaultdict deque namedtuple"),
    **_of("heapq", "heapify heappop heappush heappushpop heapreplace nlargest nsmallest"),
    **_of("bisect", "bisect_left bisect_right insort insort_left insort_right"),
    **_of("itertools", "accumulate chain combinations count cycle groupby islice pairwise permutations product repeat"),
    **_of("itertools", "combinations_with_replacement starmap takewhile zip_longest"),
    **_of("functools", "cache cmp_to_key lru_cache partial reduce"),
    **_of("math", "ceil comb factorial floor gcd inf isqrt lcm log log2 pi sqrt"),
    **_of(_NODES, "ListNode TreeNode"),
}
"""Name → the module that has it; "" for a module itself."""


def given(prelude: str | None, entry_point: str, program: bytes) -> tuple[dict[str, str], str]:
    """Return the names that a program may use without importing them, and a program to run before it.

    prelude: as `schemas/graders.py` says; None: LeetCode's names for a method of `Solution`, else typing's.
    """
    if prelude is None:
        prelude = "leetcode" if entry_point.startswith("Solution") else "typing"
    names = {"none": {}, "typing": TYPING, "leetcode": LEETCODE}.get(prelude)
    return (used(names, program), "") if names is not None else ({}, prelude)


def used(names: Mapping[str, str], program: bytes) -> dict[str, str]:
    """Choose those that a program speaks of: the others would only cost it time."""
    words = set(re.findall(rb"[A-Za-z_]\w*", program))
    return {name: source for name, source in names.items() if name.encode() in words}


def imported(program: str) -> dict[str, str]:
    """Return the names that a test program imports at its top from Python's own library: the task gives them."""
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError):
        return {}  # said where it is run
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in sys.stdlib_module_names:
            found |= {one.name: node.module for one in node.names if one.asname is None and one.name != "*"}
        elif isinstance(node, ast.Import):
            known = [one.name for one in node.names if one.asname is None and one.name in sys.stdlib_module_names]
            found |= dict.fromkeys(known, "")
    return found
