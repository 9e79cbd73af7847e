"""Programs that the tests of this folder judge, and how they ended."""

from sandbox import Judgement
from schemas import VerdictKind

PATCHED_ASSERTS = """
import builtins
builtins.AssertionError = None
builtins.abs = lambda x: 0
def f(x): return 0
"""
ALWAYS_EQUAL = """
class X:
    def __eq__(self, other): return True
    def __sub__(self, other): return 0
def f(x): return X()
"""
EQUAL_INT = """
class X(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def f(x): return X(0)
"""
FRAME_WALK = """
import sys
def f(x):
    frame = sys._getframe()
    while frame:
        frame.f_globals["check"] = lambda candidate: 0
        frame = frame.f_back
    return 0
"""
EVERY_DESCRIPTOR = """
import os
def f(x):
    for fd in range(3, 256):
        try: os.write(fd, b"passed null\\n" * 9)
        except OSError: pass
    os._exit(0)
"""
KILL_THE_TESTER = """
import os
def f(x):
    os.kill(os.getppid(), 9)
    os.kill(-1, 9)
"""
SHADOWED_MODULES = """
for name in ("unittest.py", "test_a.py", "conftest.py"):
    open("/tmp/work/" + name, "w").write("")
def f(x): return 0
"""
CHEATS = {
    "always equal": ALWAYS_EQUAL,
    "equal int": EQUAL_INT,
    "exit": "import os\ndef f(x): os._exit(0)",
    "system exit": "import sys\ndef f(x): sys.exit(0)",
    "exit at import": "import os\nos._exit(0)",
    "patched asserts": PATCHED_ASSERTS,
    "frame walk": FRAME_WALK,
    "every descriptor": EVERY_DESCRIPTOR,
    "kill the tester": KILL_THE_TESTER,
    "own builtins": "def abs(x): return 0\ndef len(x): return 2\ndef f(x): return 0",
    "skip": "import unittest\ndef f(x): raise unittest.SkipTest('no')",
    "shadowed modules": SHADOWED_MODULES,
}
"""Answers that return nothing right, and try to pass a test that runs inside the jail."""

STACK = """
class Empty(Exception):
    def __init__(self, size):
        super().__init__("empty")
        self.size = size

class Stack:
    def __init__(self, items=()): self.items = list(items)
    def push(self, item): self.items.append(item); return self
    def pop(self):
        if not self.items: raise Empty(0)
        return self.items.pop()
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __eq__(self, other): return self.items == other.items
    def __getitem__(self, i): return self.items[i]
    @property
    def top(self): return self.items[-1]

def apply(function, values): return [function(value) for value in values]
def reverse(values): values.reverse()
def shout(): print("hello")
def count():
    yield from (1, 2, 3)
"""
STACK_TESTS = """
import contextlib, io, unittest
import solution
from solution import Stack, Empty, apply, reverse

class StackTest(unittest.TestCase):
    def setUp(self):
        self.stack = Stack([1, 2])
    def test_methods(self):
        self.assertEqual(self.stack.push(3).pop(), 3)
        self.assertEqual(len(self.stack), 2)
        self.assertEqual(list(self.stack), [1, 2])
        self.assertEqual(self.stack.top, 2)
        self.assertEqual(self.stack[0], 1)
        self.assertIn(2, self.stack)
        self.assertTrue(self.stack)
    def test_own_exception(self):
        with self.assertRaises(Empty) as caught:
            Stack().pop()
        self.assertEqual(caught.exception.size, 0)
    def test_builtin_exception(self):
        with self.assertRaises(IndexError):
            Stack().top
    def test_identity(self):
        self.assertIsInstance(self.stack, Stack)
        self.assertEqual(Stack([1, 2]), self.stack)
        self.assertNotEqual(Stack([1]), self.stack)
    def test_callbacks(self):
        self.assertEqual(apply(lambda x: x * 2, [1, 2]), [2, 4])
    def test_changed_arguments(self):
        values = [1, 2, 3]
        reverse(values)
        self.assertEqual(values, [3, 2, 1])
    def test_output(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            solution.shout()
        self.assertEqual(out.getvalue(), "hello\\n")
    def test_generators(self):
        self.assertEqual(list(solution.count()), [1, 2, 3])

def test_plain():
    assert reverse([]) is None
"""


LIAR = """
class Liar:
    def __getattr__(self, name):
        return lambda *arguments, **named: (arguments or (True,))[0]
    def yes(self, *_): return True
    def nothing(self, *_): return 0
    def same(self, other): return other
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = yes
    __sub__ = __rsub__ = __mod__ = __truediv__ = __xor__ = nothing
    __add__ = __mul__ = __and__ = __or__ = same
    __hash__ = None

def f(x): return Liar()
"""
CLASS_LIAR = (
    LIAR.replace("class Liar", "class f")
    .replace("def f(x): return Liar()", "")
    .replace("    def yes(", "    def __init__(self, x): pass\n    def yes(")
)
"""Objects that agree with whatever they are compared with."""
QUESTIONS = (
    "abs(f(2) - 3) < 1e-6",
    "abs(3 - f(2)) < 1e-6",
    "f(2) < 3 or f(2) > 3",
    "3 in f(2)",
    "f(2).startswith('abc')",
    "f(2).count(3)",
    "f(2).union({3}) == {3}",
    "f(2) + 3 == 3",
    "(f(2) | {3}) == {3}",
    "f(2) % 3 == 0",
    "f(2) in (3, 4)",
    "3 == f(2)",
    "[3] == [f(2)]",
    "not (f(2) - {3})",
    "f(2).get('a', 3) == 3",
)
"""Each is true of some plain value, and must not be true of a liar."""


def kinds(result: Judgement) -> list[VerdictKind]:
    """Each test's, or the job's where there are none."""
    return [test.kind for test in result.tests] or [result.kind]
