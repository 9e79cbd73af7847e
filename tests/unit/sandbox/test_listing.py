"""The tests of a test file, read before anything runs."""

# ruff: noqa: E501 - a program a line

import pytest

from sandbox.graders.listing import is_test_file, marked_tests
from sandbox.graders.marks import Marks
from sandbox.graders.needs import unseen

SOURCE = """
import unittest

class Base(unittest.TestCase):
    def test_shared(self): ...
    def helper(self): ...

class Derived(Base):
    def test_own(self): ...

class TestPlain:
    def test_a(self): ...

class NoTests:
    def test_b(self): ...

def test_function(): ...
def helper(): ...
"""


def test_ids_in_order() -> None:
    assert list(marked_tests("test_x.py", SOURCE)) == [
        "test_x.py::Base::test_shared",
        "test_x.py::Derived::test_shared",
        "test_x.py::Derived::test_own",
        "test_x.py::TestPlain::test_a",
        "test_x.py::test_function",
    ]


def test_a_file_that_does_not_parse() -> None:
    with pytest.raises(ValueError, match="test_x"):
        marked_tests("test_x.py", "def (")


@pytest.mark.parametrize(
    ("name", "holds"),
    [("test_a.py", True), ("pkg/a_test.py", True), ("conftest.py", False), ("tests.py", False), ("test_a.txt", False)],
)
def test_names(name: str, holds: bool) -> None:
    assert is_test_file(name) is holds


MARKS: list[tuple[str, Marks]] = [
    ("@unittest.skip('why')", Marks("always")),
    ("@unittest.skip", Marks("always")),
    ("@pytest.mark.skip(reason='why')", Marks("always")),
    # what only the host decides
    ("@unittest.skipIf(sys.platform == 'win32', 'why')", Marks("host")),
    ("@pytest.mark.skipif(sys.version_info < (3, 20), reason='why')", Marks("host")),
    ("@pytest.mark.skipif('sys.version_info < (3, 20)', reason='why')", Marks("host")),
    ("@unittest.skipUnless(HAVE, 'why')", Marks("host")),
    ("@unittest.skipUnless(numpy and not LATER, 'why')", Marks("host")),
    ("@unittest.skipUnless(shutil.which('git'), 'why')", Marks("host")),
    ("@windows", Marks("host")),
    # what the answer decides is no mark
    ("@unittest.skipUnless(hasattr(solution, 'f'), 'why')", Marks("answer")),
    ("@unittest.skipIf(f is None, 'why')", Marks("answer")),
    ("@unittest.skipIf(OURS, 'why')", Marks("answer")),
    ("@unittest.skipUnless(HAS_G, 'why')", Marks("answer")),
    ("@pytest.mark.skipif(\"hasattr(solution, 'BAD')\", reason='why')", Marks("answer")),
    # what it may have decided
    ("@unittest.skipIf(os.path.exists('/tmp/flag'), 'why')", Marks("unclear")),
    ("@unittest.skipUnless(os.environ.get('NET'), 'why')", Marks("unclear")),
    ("@unittest.skipIf(hasattr(BY_NAME, 'BAD'), 'why')", Marks("unclear")),
    ("@online", Marks("unclear")),
    # expected to fail
    ("@unittest.expectedFailure", Marks(xfail="always")),
    ("@pytest.mark.xfail", Marks(xfail="always")),
    ("@pytest.mark.xfail(reason='why', strict=True)", Marks(xfail="always")),
    ("@pytest.mark.xfail(sys.platform == 'win32', reason='why')", Marks(xfail="host")),
    ("@pytest.mark.xfail(hasattr(solution, 'BAD'), reason='why')", Marks(xfail="answer")),
    ("@pytest.mark.xfail('BAD' in os.environ, reason='why')", Marks(xfail="unclear")),
    ("@pytest.mark.parametrize('x', [1, pytest.param(2, marks=pytest.mark.skip)])", Marks("host")),
    ("@pytest.mark.parametrize('x', [1, pytest.param(2, marks=[pytest.mark.xfail])])", Marks(xfail="host")),
    ("@pytest.mark.slow", Marks()),
]
HEAD = """
import os, shutil, sys, unittest, pytest, solution
from solution import f
try:
    import numpy
except ImportError:
    numpy = None
try:
    from solution import g
    HAS_G = True
except ImportError:
    HAS_G = False
HAVE = 1
LATER = sys.version_info >= (3, 30)
OURS = f(1) == 2
BY_NAME = sys.modules["solu" + "tion"]
windows = unittest.skipUnless(sys.platform == "win32", "why")
online = pytest.mark.skipif(not os.environ.get("NET"), reason="why")
"""


@pytest.mark.parametrize(("decorator", "marks"), MARKS)
def test_what_the_source_marks(decorator: str, marks: Marks) -> None:
    source = f"{HEAD}class T(unittest.TestCase):\n    {decorator}\n    def test_a(self): ...\n"
    assert marked_tests("test_a.py", source) == {"test_a.py::T::test_a": marks}


def test_a_skip_in_the_middle_is_no_mark() -> None:
    source = f"{HEAD}def test_a():\n    pytest.skip('why')\n"
    assert marked_tests("test_a.py", source) == {"test_a.py::test_a": Marks()}


def test_marks_of_classes_and_files() -> None:
    one = "@unittest.skip('x')\nclass TestA:\n    def test_a(self): ...\ndef test_b(): ...\n"
    assert list(marked_tests("test_a.py", one).values()) == [Marks("always"), Marks()]
    every = "pytestmark = [pytest.mark.slow, pytest.mark.skip]\n" + one
    assert list(marked_tests("test_a.py", every).values()) == [Marks("always"), Marks("always")]
    derived = one + "class TestB(TestA):\n    def test_c(self): ...\n"
    assert marked_tests("test_a.py", derived)["test_a.py::TestB::test_c"] == Marks("always")


@pytest.mark.parametrize(
    ("source", "used"),
    [
        (
            "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertIs(f(1), f(2))\n",
            "`assertIs`",
        ),
        ("def check(candidate):\n    assert candidate(1) == 2\n    assert abs(candidate(2) - 1.5) < 1e-6\n", None),
        (
            "import math\ndef test_a():\n    assert math.isclose(f(1), 2)\n    assert f(2) is None\n    assert f(3) is True\n",
            None,
        ),
        ("def check(candidate):\n    a = [1]\n    assert candidate(a) is a\n", "identity (`is`)"),
        ("import json\ndef test_a(): ...\n", "`json`"),
        ("from unittest import mock\n", "patches"),
        ("from unittest.mock import patch\n", "patches"),
        ("import random\n", "seeds"),
        ("def test_a(tmp_path): ...\n", "tmp_path"),
        ("class Mine(Base):\n    pass\n", "a class of its own, Mine"),
        ("async def test_a(): ...\n", "async"),
        ("def test_a():\n    assert f.__doc__\n", "`__doc__`"),
        ("def test_a():\n    assert isinstance(f(1), int)\n", "`isinstance`"),
        ("def test_a(self):\n    self.assertIs(f(1), True)\n", None),
        ("not python", None),
    ],
)
def test_what_stand_ins_may_not_show(source: str, used: str | None) -> None:
    assert unseen([source]) == used
