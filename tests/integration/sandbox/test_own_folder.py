"""The folder that a program starts in is its own, and closing or moving it takes nothing from the tests after it."""

from sandbox import Judge
from schemas import (
    CheckGrader,
    FunctionGrader,
    FunctionTest,
    NamedTest,
    StdioGrader,
    StdioTest,
    UnittestGrader,
    VerdictKind,
)
from tests.integration.sandbox.programs import kinds

K = VerdictKind
CHANGES = """
import os

def f():
    os.chmod(".", 0o750)
    os.utime(".", (1, 2))
    os.mkdir("inner")
    folder = os.stat(".")
    return [oct(folder.st_mode & 0o7777), folder.st_mtime > 0, folder.st_uid == os.getuid(), os.getcwd()]
"""
CLOSES = """
import os
os.chmod(".", 0)
{then}
def f():
    return 1
"""
MOVES = "os.rename('/tmp/work', '/tmp/elsewhere')"
LINKS = "shutil.rmtree('/tmp/work'); os.symlink('/proc', '/tmp/work')"


async def test_a_program_changes_the_folder_that_it_starts_in() -> None:
    async with Judge(1) as judge:
        grader = FunctionGrader(entry_point="f", tests=(FunctionTest.of([], ["0o750", True, True, "/tmp/work"]),) * 2)
        assert kinds(await judge.judge(CHANGES, grader)) == [K.ACCEPTED, K.ACCEPTED]
        shell = StdioGrader(language="bash", tests=(StdioTest(stdout="750\n"),) * 2)
        assert kinds(await judge.judge("chmod 750 . && stat -c %a .", shell)) == [K.ACCEPTED, K.ACCEPTED]


async def test_closing_or_moving_it_harms_nobody_else() -> None:
    """The tests after it, and those that run beside the answer, have a folder as ever: no fault, no false failure."""
    async with Judge(1) as judge:
        for then in ("", MOVES):
            program = CLOSES.format(then=then)
            function = FunctionGrader(entry_point="f", tests=(FunctionTest.of([], 1),) * 3)
            assert kinds(await judge.judge(program, function)) == [K.ACCEPTED] * 3
            check = CheckGrader(entry_point="f", program="import os\nos.getpid()\ndef check(g):\n    assert g() == 1\n")
            assert kinds(await judge.judge(program, check)) == [K.ACCEPTED]
            suite = UnittestGrader(
                solution="solution.py",
                files={
                    "test_a.py": "import unittest\nfrom solution import f\n"
                    "class T(unittest.TestCase):\n    def test_1(self):\n        self.assertEqual(f(), 1)\n"
                },
                tests=(NamedTest(id="test_a.py::T::test_1"),),
            )
            assert kinds(await judge.judge(program, suite)) == [K.ACCEPTED]
        links = "import os, shutil\n" + LINKS + "\nprint(1)\n"
        assert kinds(await judge.judge(links, StdioGrader(tests=(StdioTest(stdout="1\n"),) * 2))) == [K.ACCEPTED] * 2
        again = "import os\nprint(sorted(os.listdir('.')), oct(os.stat('.').st_mode & 0o777))\n"
        fresh = StdioGrader(tests=(StdioTest(stdout="['solution.py'] 0o777\n"),))
        assert kinds(await judge.judge(again, fresh)) == [K.ACCEPTED]
