"""What an answer may try with what the tests lend it, and with what the two processes have in common."""

# ruff: noqa: E501 - a program a line

import pytest

from sandbox import Judge
from sandbox.errors import TaskFault
from schemas import CheckGrader, UnittestGrader, VerdictKind

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEAD = "import unittest\nfrom unittest.mock import Mock\nfrom solution import f\nEXPECTED = 'secret-41'\n"
LENDS = (
    HEAD
    + """class Helper:
    name = 'helper'
    def value(self): return 1
def items():
    yield 1
class T(unittest.TestCase):
    def test_function(self):
        self.assertEqual(f(lambda x: x), EXPECTED)
    def test_object(self):
        self.assertEqual(f(Helper()), EXPECTED)
    def test_class(self):
        self.assertEqual(f(Helper), EXPECTED)
    def test_generator(self):
        self.assertEqual(f(items()), EXPECTED)
    def test_method(self):
        self.assertEqual(f(Helper().value), EXPECTED)
"""
)
CALLED = (
    HEAD
    + "class T(unittest.TestCase):\n    def test(self):\n        m = Mock()\n        f(m)\n        m.send.assert_called_once_with(3)\n"
)
ROADS = (
    "x.__globals__['EXPECTED']",
    "x.gi_frame.f_globals['EXPECTED']",
    "x.__init__.__globals__['EXPECTED']",
    "x.__class__.__mro__[1].__subclasses__()",
    "x.value.__func__.__globals__['EXPECTED']",
    "x.__self__",
    "getattr(x, '__dict__')",
    "x.__reduce__()",
    "x._ask(x._lent, 'getattr', ('__globals__',), {})",
    "object.__getattribute__(x, '_ask')(object.__getattribute__(x, '_lent'), 'getattr', ('__globals__',), {})['EXPECTED']",
    "object.__getattribute__(x, '_ask')(0, 'getattr', ('__code__',), {})",
    "object.__getattribute__(x, '_ask')(0, 'format', ('{0.__globals__}',), {})",
)


async def kinds(judge: Judge, program: str, files: dict[str, str]) -> list[VerdictKind]:
    """The verdicts; none where the job is unscorable, as an answer can forge a pass in its own process."""
    try:
        return [test.kind for test in (await judge.judge(program, UnittestGrader(files=files))).tests]
    except TaskFault:
        return []


@pytest.mark.parametrize("road", ROADS)
async def test_nothing_leads_from_what_is_lent_to_what_is_expected(road: str, judge: Judge) -> None:
    program = f"def f(x):\n    try:\n        return {road}\n    except BaseException:\n        return 'none'\n"
    assert VerdictKind.ACCEPTED not in await kinds(judge, program, {"test_a.py": LENDS})


@pytest.mark.parametrize(
    "program",
    [
        "def f(m):\n    m.send.assert_called_once_with = lambda *a: None\n",
        "def f(m):\n    m.configure_mock(**{'send.called': True, 'send.call_count': 1})\n",
        "def f(m):\n    m.send.call_count = 1\n    m.send.call_args = ((3,), {})\n",
        "def f(m):\n    m.send(4)\n    m.send.reset_mock()\n",
        "def f(m):\n    m.send = lambda *a: None\n",
    ],
)
async def test_a_mock_is_not_told_what_to_remember(program: str, judge: Judge) -> None:
    assert VerdictKind.ACCEPTED not in await kinds(judge, program, {"test_a.py": CALLED})
    honest = await judge.judge("def f(m):\n    m.send(3)\n", UnittestGrader(files={"test_a.py": CALLED}))
    assert honest.kind is VerdictKind.ACCEPTED


@pytest.mark.parametrize(
    "program",
    [
        # errors of test tools, by their names and modules
        "import unittest\ndef f(x):\n    raise unittest.SkipTest('skip')\n",
        "import unittest.case\ndef f(x):\n    raise unittest.case._ShouldStop\n",
        "class SkipTest(Exception): __module__ = 'unittest.case'\ndef f(x):\n    raise SkipTest('x')\n",
        "class Exit(Exception): __module__ = 'pytest'\ndef f(x):\n    raise Exit('x')\n",
        # what is told back
        "import os\ndef f(x):\n    os.environ.update(PYTHONSTARTUP='/tmp/x', PATH='/tmp', ANY='1')\n    return 0\n",
        "import warnings\ndef f(x):\n    for _ in range(5000): warnings.warn('w' * 50)\n    return 0\n",
        "import logging\ndef f(x):\n    for i in range(5000): logging.getLogger(str(i)).error('l')\n    return 0\n",
        # one object for another
        "class Any:\n    def __eq__(self, o): return True\n    def __await__(self): yield\ndef f(x):\n    return Any()\n",
        "async def g(): return 41\ndef f(x):\n    return g()\n",
        "def f(x):\n    yield 41\n",
    ],
)
async def test_what_is_told_back_passes_nothing(program: str, judge: Judge) -> None:
    tests = "import unittest, logging, asyncio, mock_free\nfrom solution import f\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(f(1), 41)\n"
    files = {"test_a.py": tests, "mock_free.py": ""}
    assert VerdictKind.ACCEPTED not in await kinds(judge, program, files)


async def test_links_in_a_shared_folder_lead_nowhere(judge: Judge) -> None:
    """The tests' own files are theirs alone, and a link of the answer's is not followed by another user."""
    tests = (
        "import glob, os, tempfile, unittest\nfrom solution import f\nEXPECTED = 'secret-41'\nclass T(unittest.TestCase):\n"
        "    def test(self):\n        with tempfile.TemporaryDirectory() as d:\n"
        "            self.assertEqual(f(d, os.getcwd()), EXPECTED)\n"
    )
    program = (
        "import os, glob\ndef f(d, tests):\n    found = ''\n    for name in glob.glob(tests + '/*') + glob.glob('/tmp/*/*'):\n"
        "        try: found += open(name).read()\n        except OSError: pass\n"
        "    os.symlink(tests, d + '/tests')\n    return 'secret-41' if 'secret-' + '41' in found else found\n"
    )
    forging = program.replace("'secret-41' if", "'secret-' + '41' if")
    assert VerdictKind.ACCEPTED not in await kinds(judge, forging, {"test_a.py": tests})


async def test_a_seed_of_the_tests_says_nothing_but_itself(judge: Judge) -> None:
    """An answer gets the state that the test has set, and cannot set the test's."""
    program = "import random\ndef check(candidate):\n    for _ in range(5):\n        x = random.randrange(10 ** 9)\n        assert candidate(x) == x % 7\n"
    answer = "import random\nrandom.seed(1)\nA = [random.randrange(10 ** 9) % 7 for _ in range(5)]\nrandom.seed(1)\ndef f(x):\n    random.seed(1)\n    return A.pop(0)\n"
    result = await judge.judge(answer, CheckGrader(entry_point="f", program=program))
    assert result.kind is VerdictKind.WRONG_ANSWER
