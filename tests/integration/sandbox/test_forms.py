"""The forms in which tasks with calls come: methods, nodes, results in place, names that are given, JSON's data."""

# ruff: noqa: E501 - a program a line

from typing import Any

import msgspec
import pytest

from sandbox import Judge
from sandbox.errors import TaskFault
from schemas import Checker, FunctionGrader, FunctionTest, StdioGrader, StdioTest, VerdictKind

pytestmark = pytest.mark.asyncio(loop_scope="module")


def calls(entry_point: str, *tests: tuple[list[Any], Any], **fields: Any) -> FunctionGrader:
    return FunctionGrader(
        entry_point=entry_point, tests=tuple(FunctionTest.of(args, expected) for args, expected in tests), **fields
    )


async def passed(judge: Judge, program: str, grader: FunctionGrader) -> list[bool]:
    result = await judge.judge(program, grader)
    return [test.kind is VerdictKind.ACCEPTED for test in result.tests]


TOTAL = "class Solution:\n    def total(self, nums: List[int]) -> int:\n        return sum(nums)\n"
COUNTS = "class Solution:\n    seen = 0\n    def __init__(self): self.n = 0\n    def next(self):\n        self.n += 1\n        return self.n\n"
USUAL = """
class Solution:
    def f(self, xs: List[int], k: Optional[int] = None) -> Dict[int, int]:
        heap = list(xs)
        heapq.heapify(heap)
        d = defaultdict(int)
        for x in deque(xs):
            d[x] += math.gcd(x, 2) + bisect_left(sorted(xs), x)
        return d if heappop(heap) < inf else Counter(xs)
"""
REVERSE = """
class Solution:
    def reverseList(self, head: Optional[ListNode]) -> Optional[ListNode]:
        before = None
        while head:
            head.next, before, head = before, head, head.next
        return before
"""
REORDER = """
class Solution:
    def swap(self, head: Optional[ListNode]) -> None:
        if head and head.next:
            head.val, head.next.val = head.next.val, head.val
"""
INVERT = """
class Solution:
    def invertTree(self, root: Optional[TreeNode]) -> Optional[TreeNode]:
        if root:
            root.left, root.right = self.invertTree(root.right), self.invertTree(root.left)
        return root
"""
MERGE = """
class Solution:
    def mergeKLists(self, lists: List[Optional[ListNode]]) -> Optional[ListNode]:
        values = []
        for node in lists:
            while node:
                values.append(node.val)
                node = node.next
        head = None
        for value in sorted(values, reverse=True):
            head = ListNode(value, head)
        return head
"""
OWN = """
class ListNode:
    def __init__(self, x):
        self.val, self.next = x, None

def last(head: ListNode):
    while head.next:
        head = head.next
    return head.val
"""
ENDLESS = """
class Solution:
    def f(self, head: Optional[ListNode]) -> Optional[ListNode]:
        head.next = head
        return head
"""


@pytest.mark.parametrize(
    ("program", "grader"),
    [
        (TOTAL, calls("Solution.total", ([[1, 2, 3]], 6), ([[]], 0))),
        (TOTAL, calls("Solution().total", ([[1, 2, 3]], 6))),
        (COUNTS, calls("Solution.next", ([], 1), ([], 1))),
        (USUAL, calls("Solution.f", ([[4, 4, 3]], {"4": 6, "3": 1}))),
        (REVERSE, calls("Solution.reverseList", ([[1, 2, 3]], [3, 2, 1]), ([[]], []), ([[1]], [1]))),
        (REORDER, calls("Solution.swap", ([[1, 2, 3]], [2, 1, 3]), ([[1]], [1]))),
        (INVERT, calls("Solution.invertTree", ([[4, 2, 7, 1, 3]], [4, 7, 2, None, None, 3, 1]), ([[]], []))),
        (MERGE, calls("Solution.mergeKLists", ([[[1, 4], [1, 3], []]], [1, 1, 3, 4]), ([[]], []))),
        (OWN, calls("last", ([[1, 2, 3]], 3))),
        ("def total(nums: List[int]) -> int:\n    return sum(nums)", calls("total", ([[1, 2]], 3))),
        ("def f(x):\n    return math.floor(x)", calls("f", ([1.5], 1), prelude="leetcode")),
        ("def f(x):\n    return helper(x)", calls("f", ([1], 2), prelude="def helper(x):\n    return x + 1\n")),
        # in place
        ("def rev(xs):\n    xs.reverse()", calls("rev", ([[1, 2, 3]], [3, 2, 1]), ([[1]], [1]), ([[]], []))),
        ("def f(n, xs):\n    xs.append(n)\n    return n", calls("f", ([1, [2]], [2, 1]), returns="argument 1")),
        ("def f(xs):\n    xs.clear()", calls("f", ([[1]], None), returns="value")),
        ("def f(grid):\n    grid[0][0] = 9", calls("f", ([[[1, 2]]], [[9, 2]]))),
        # data of JSON, and not
        ("def first(d):\n    return d[1]", calls("first", ([{"1": "a"}], "a"))),
        ("def first(d):\n    return d['1']", calls("first", ([{"1": "a"}], "a"))),
        ("def first(d):\n    return d[1][2]", calls("first", ([{"1": {"2": "a"}}], "a"), int_keys=True)),
        (
            "def f(xs):\n    return {x: i for i, x in enumerate(xs)}",
            calls("f", ([[1.5, None, True]], {"1.5": 0, "null": 1, "true": 2})),
        ),
        (
            "from fractions import Fraction\ndef f(n):\n    return [Fraction(n, 2)]",
            calls("f", ([1], [0.5]), ([4], [2])),
        ),
        ("from decimal import Decimal\ndef f(s):\n    return Decimal(s)", calls("f", (["0.1"], 0.1), (["-12"], -12))),
        ("from array import array\ndef f():\n    return array('i', [1, 2])", calls("f", ([], [1, 2]))),
        ("def f(n):\n    return n + 1", calls("f", ([10**30], 10**30 + 1))),
        ("def f(s):\n    return len(str(int(s)))", calls("f", (["1" * 9000], 9000))),
        # comparing
        ("def f():\n    return [3, 1, 2]", calls("f", ([], [1, 2, 3]), compare="any_order")),
        ("def f():\n    return 'aba'", calls("f", ([], ["bab", "aba"]), compare="one_of")),
        ("def f():\n    return 3.14", calls("f", ([], 3.1416), tolerance=0.01)),
    ],
)
async def test_right_answers_are_right(program: str, grader: FunctionGrader, judge: Judge) -> None:
    assert all(await passed(judge, program, grader))


@pytest.mark.parametrize(
    ("program", "grader", "right"),
    [
        # nothing returned, nothing done: the tests whose result equals the argument are not passed by it
        ("def rev(xs):\n    pass", calls("rev", ([[1, 2, 3]], [3, 2, 1]), ([[1]], [1])), [False, False]),
        ("def rev(xs):\n    xs.reverse()", calls("rev", ([[1, 2]], [2, 1]), returns="value"), [False]),
        ("def rev(xs):\n    xs.append(1)\n    return xs", calls("rev", ([[1]], [1, 1]), returns="argument 0"), [True]),
        ("def f(xs):\n    return None", calls("f", ([[]], [])), [False]),
        ("def f(x):\n    return math.floor(x)", calls("f", ([1.5], 1)), [False]),
        ("def f(x) -> List[int]:\n    return [x]", calls("f", ([1], [1]), prelude="none"), [False]),
        (ENDLESS, calls("Solution.f", ([[1]], [1])), [False]),
        ("def f(s):\n    return int(s)", calls("f", (["1" * 5000], int("1" * 4000)), int_digits=4300), [False]),
        ("def first(d):\n    return d[1]", calls("first", ([{"1": "a"}], "a"), int_keys=False), [False]),
        ("def f():\n    return [3, 1, 1]", calls("f", ([], [1, 2, 3]), compare="any_order"), [False]),
    ],
)
async def test_wrong_ones_are_not(program: str, grader: FunctionGrader, right: list[bool], judge: Judge) -> None:
    assert await passed(judge, program, grader) == right


async def test_a_checker_judges_values_in_a_jail_of_its_own(judge: Judge) -> None:
    checker = Checker(
        program="import json, sys\nargs, value, _ = (json.load(open(name)) for name in sys.argv[1:])\n"
        "assert sum(value) == args[0] and len(value) == 2\n"
    )
    grader = calls("split", ([5], None), ([8], None), checker=checker)
    assert await passed(judge, "def split(n):\n    return (2, n - 2)", grader) == [True, True]
    assert await passed(judge, "def split(n):\n    return (2, 3)", grader) == [True, False]


@pytest.mark.parametrize("args", ['{"a": 1, "b": 2}', "4", '"[4]"', "null"])
async def test_arguments_that_are_no_list_are_the_tasks_fault(args: str, judge: Judge) -> None:
    test = FunctionTest(args=msgspec.Raw(args.encode()), expected=msgspec.Raw(b"5"))
    with pytest.raises(TaskFault, match=r"args. of test 1 is no JSON list"):
        await judge.judge("def f(n):\n    return n + 1", FunctionGrader(entry_point="f", tests=(test,)))


async def test_a_prelude_that_cannot_be_run_is_the_tasks_fault(judge: Judge) -> None:
    with pytest.raises(TaskFault, match="prelude"):
        await judge.judge("def f(): return 1", calls("f", ([], 1), prelude="import nothing_like_it\n"))


@pytest.mark.parametrize(("digits", "kind"), [(0, VerdictKind.ACCEPTED), (4300, VerdictKind.RUNTIME_ERROR)])
async def test_digits_are_as_the_task_says(digits: int, kind: VerdictKind, judge: Judge) -> None:
    test = StdioTest(stdin="1" * 5000 + "\n", stdout=str(int("1" * 4000) * 0 + 5000))
    grader = StdioGrader(tests=(test,), int_digits=digits)
    result = await judge.judge("n = int(input())\nprint(len(str(n)))\n", grader)
    assert result.tests[0].kind is kind
