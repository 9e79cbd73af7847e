"""Test files and check programs in the answer's own process, by wish, and to see what two processes cannot show."""

# ruff: noqa: E501 - a program a line

import pytest

from sandbox import Judge
from sandbox.errors import TaskFault
from schemas import CheckGrader, UnittestGrader, VerdictKind

pytestmark = pytest.mark.asyncio(loop_scope="module")

FRAMES = """import sys, unittest
from solution import f
class T(unittest.TestCase):
    def test_depth(self):
        here = sys._getframe()
        self.assertIs(f(), here)
    def test_plain(self):
        self.assertEqual(f() is None, False)
"""
RIGHT, WRONG = "import sys\ndef f():\n    return sys._getframe(1)\n", "def f():\n    return 3\n"


def suite(source: str, **fields: bool) -> UnittestGrader:
    return UnittestGrader(files={"test_a.py": source}, **fields)


async def test_a_right_answer_that_two_processes_cannot_show_is_no_zero(judge: Judge) -> None:
    with pytest.raises(TaskFault, match=r"the tests use .*test_depth.*in_process"):
        await judge.judge(RIGHT, suite(FRAMES))
    result = await judge.judge(RIGHT, suite(FRAMES, in_process=True))
    assert [test.kind for test in result.tests] == [VerdictKind.ACCEPTED] * 2


async def test_a_wrong_one_is_one_with_either(judge: Judge) -> None:
    for grader in (suite(FRAMES), suite(FRAMES, in_process=True)):
        result = await judge.judge(WRONG, grader)
        assert [test.kind for test in result.tests] == [VerdictKind.WRONG_ANSWER, VerdictKind.ACCEPTED]


async def test_a_check_is_looked_into_the_same_way(judge: Judge) -> None:
    program = "import sys\ndef check(candidate):\n    assert candidate() is sys._getframe()\n"
    grader = CheckGrader(entry_point="f", program=program)
    with pytest.raises(TaskFault, match="the interpreter's state"):
        await judge.judge(RIGHT, grader)
    assert (await judge.judge(WRONG, grader)).kind is VerdictKind.WRONG_ANSWER
    alone = CheckGrader(entry_point="f", program=program, in_process=True)
    assert (await judge.judge(RIGHT, alone)).kind is VerdictKind.ACCEPTED
    assert (await judge.judge(WRONG, alone)).kind is VerdictKind.WRONG_ANSWER


async def test_plain_tests_are_never_run_in_the_answers_process(judge: Judge) -> None:
    """Only what the task's source uses decides that; an answer that would forge a pass there stays wrong."""
    forger = "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef f(x):\n    return 0\n"
    plain = "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(1), 41)\n"
    assert (await judge.judge(forger, suite(plain))).kind is VerdictKind.WRONG_ANSWER


async def test_syntax_and_limits_are_told_alike(judge: Judge) -> None:
    assert (await judge.judge("def f(:", suite(FRAMES, in_process=True))).kind is VerdictKind.COMPILE_ERROR
    left = await judge.judge("import os\ndef f():\n    os._exit(0)\n", suite(FRAMES, in_process=True))
    assert all(test.kind is not VerdictKind.ACCEPTED for test in left.tests)


SKIPS = """import sys, unittest
from solution import f
class T(unittest.TestCase):
    def test_one(self):
        self.assertEqual(f(1), 1)
    @unittest.skip("no display")
    def test_window(self):
        self.fail()
    @unittest.skipIf(sys.version_info > (3,), "old")
    def test_old(self):
        self.fail()
    @unittest.skipIf(sys.version_info < (3,), "new")
    def test_new(self):
        self.assertEqual(f(2), 2)
    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(f(3), "never")
    @unittest.skipIf(f(9) == 9, "the answer's doing")
    def test_theirs(self):
        self.assertEqual(f(4), 5)
"""
XFAILS = """import pytest
from solution import f
@pytest.mark.xfail(reason="not yet")
def test_expected():
    assert f(3) == "never"
@pytest.mark.xfail(strict=True)
def test_too_good():
    assert f(1) == 1
@pytest.mark.skip
def test_skipped():
    assert False
@pytest.mark.skipif(True, reason="x")
def test_left_out():
    assert False
def test_stops():
    pytest.skip("in the middle")
"""


async def test_skips_and_expected_failures(judge: Judge) -> None:
    result = await judge.judge("def f(x):\n    return x\n", suite(SKIPS))
    kinds = {test.name.rpartition("::")[2]: test.kind for test in result.tests}
    assert kinds == {
        "test_one": VerdictKind.ACCEPTED,
        "test_new": VerdictKind.ACCEPTED,
        "test_expected": VerdictKind.ACCEPTED,
        "test_theirs": VerdictKind.WRONG_ANSWER,
    }
    result = await judge.judge("def f(x):\n    return x\n", suite(XFAILS))
    kinds = {test.name.rpartition("::")[2]: test.kind for test in result.tests}
    assert kinds == {
        "test_expected": VerdictKind.ACCEPTED,
        "test_too_good": VerdictKind.WRONG_ANSWER,
        "test_stops": VerdictKind.WRONG_ANSWER,
    }


PLANTS = """import os
for path in ("/tmp/flag", "flag"):
    open(path, "w").close()
os.environ["FLAG"] = FLAG = "1"
def __getattr__(name):
    os.environ["FLAG"] = "1"
    raise AttributeError(name)
def f(x=0):
    return -1
"""
UNMET = {
    "a file": "import os\nBAD = os.path.exists('/tmp/flag')\n",
    "a variable": "import os, solution\nhasattr(solution, 'g')\nBAD = 'FLAG' in os.environ\n",
    "an attribute": "import solution\nBAD = hasattr(solution, 'FLAG')\n",
    "a name that is missing": "try:\n    from solution import g\n    BAD = False\nexcept ImportError:\n    BAD = True\n",
    "the module by its name": "import sys\nBAD = hasattr(sys.modules['solution'], 'FLAG')\n",
}
MARKED = {
    "skipIf": "import unittest\nclass T(unittest.TestCase):\n    @unittest.skipIf(BAD, 'x')\n    def test_f(self):\n        self.assertEqual(f(), 1)\n",
    "skipif": "import pytest\n@pytest.mark.skipif(BAD, reason='x')\ndef test_f():\n    assert f() == 1\n",
    "xfail": "import pytest\n@pytest.mark.xfail(BAD, reason='x')\ndef test_f():\n    assert f() == 1\n",
    "in the middle": "import pytest\ndef test_f():\n    if BAD:\n        pytest.xfail('x')\n    assert f() == 1\n",
}


@pytest.mark.parametrize("condition", UNMET)
@pytest.mark.parametrize("mark", MARKED)
async def test_no_answer_has_a_test_left_out(condition: str, mark: str, judge: Judge) -> None:
    """What an answer can plant marks no test: it is wrong, or nobody can say; the plain test beside it is no 1.0."""
    source = f"from solution import f\n{UNMET[condition]}{MARKED[mark]}\ndef test_plain():\n    assert True\n"
    try:
        result = await judge.judge(PLANTS, suite(source))
    except TaskFault:
        return
    kinds = {test.name.rpartition("::")[2]: test.kind for test in result.tests}
    assert kinds == {"test_f": VerdictKind.WRONG_ANSWER, "test_plain": VerdictKind.ACCEPTED}


SOME = """import pytest, sys
from solution import f
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.skip), 2, pytest.param(9, marks=pytest.mark.xfail)])
def test_f(x):
    assert f(x) == x and x < 9
"""


async def test_marks_of_single_parameters(judge: Judge) -> None:
    right = await judge.judge("def f(x):\n    return x\n", suite(SOME))
    assert right.kind is VerdictKind.ACCEPTED
    wrong = await judge.judge("def f(x):\n    return 1\n", suite(SOME))
    assert wrong.kind is VerdictKind.WRONG_ANSWER


async def test_a_skip_of_the_base_is_inherited(judge: Judge) -> None:
    source = "import unittest\nfrom solution import f\n@unittest.skip('x')\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.fail()\nclass B(A):\n    def test_b(self):\n        self.fail()\nclass C(unittest.TestCase):\n    def test_c(self):\n        self.assertEqual(f(1), 1)\n"
    result = await judge.judge("def f(x):\n    return x\n", suite(source))
    assert [test.name.rpartition("::")[2] for test in result.tests] == ["test_c"]


async def test_a_file_that_skips_itself_is_the_tasks_fault(judge: Judge) -> None:
    with pytest.raises(TaskFault, match="skips all"):
        await judge.judge(
            "def f(x):\n    return x\n",
            suite("import pytest\npytest.importorskip('nothing_like_it')\ndef test_a():\n    assert True\n"),
        )


async def test_files_that_skip_everything_are_the_tasks_fault(judge: Judge) -> None:
    with pytest.raises(TaskFault, match="every test"):
        await judge.judge(
            "f = 1",
            suite("import unittest\n@unittest.skip('x')\nclass T(unittest.TestCase):\n    def test_a(self): ...\n"),
        )
