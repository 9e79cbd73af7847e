"""The tests of a test file, read before anything runs."""

# ruff: noqa: E501 - a program a line

import pytest

from sandbox.graders.listing import Mark, is_test_file, list_tests, marked_tests
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
    assert list_tests("test_x.py", SOURCE) == [
        "test_x.py::Base::test_shared",
        "test_x.py::Derived::test_shared",
        "test_x.py::Derived::test_own",
        "test_x.py::TestPlain::test_a",
        "test_x.py::test_function",
    ]


def test_a_file_that_does_not_parse() -> None:
    with pytest.raises(ValueError, match="test_x"):
        list_tests("test_x.py", "def (")


@pytest.mark.parametrize(
    ("name", "holds"),
    [("test_a.py", True), ("pkg/a_test.py", True), ("conftest.py", False), ("tests.py", False), ("test_a.txt", False)],
)
def test_names(name: str, holds: bool) -> None:
    assert is_test_file(name) is holds


MARKS: list[tuple[str, Mark]] = [
    ("@unittest.skip('why')\n    def test_a(self): ...", "skip"),
    ("@unittest.skip\n    def test_a(self): ...", "skip"),
    ("@pytest.mark.skip(reason='why')\n    def test_a(self): ...", "skip"),
    ("@unittest.skipIf(sys.platform == 'win32', 'why')\n    def test_a(self): ...", "maybe"),
    ("@pytest.mark.skipif(sys.version_info < (3, 20), reason='why')\n    def test_a(self): ...", "maybe"),
    ("@unittest.skipUnless(HAVE, 'why')\n    def test_a(self): ...", "maybe"),
    # a condition that the answer can meet is no mark
    ("@unittest.skipUnless(hasattr(solution, 'f'), 'why')\n    def test_a(self): ...", ""),
    ("@unittest.skipIf(f is None, 'why')\n    def test_a(self): ...", ""),
    ("@unittest.skipIf(OURS, 'why')\n    def test_a(self): ...", ""),
    ("@unittest.expectedFailure\n    def test_a(self): ...", ""),
    ("def test_a(self): self.skipTest('why')", ""),
]


@pytest.mark.parametrize(("method", "mark"), MARKS)
def test_what_the_source_marks_as_skipped(method: str, mark: Mark) -> None:
    head = "import sys, unittest, pytest, solution\nfrom solution import f\nHAVE = 1\nOURS = f(1) == 2\n"
    source = f"{head}class T(unittest.TestCase):\n    {method}\n"
    assert marked_tests("test_a.py", source) == {"test_a.py::T::test_a": mark}


def test_marks_of_classes_and_files() -> None:
    one = "@unittest.skip('x')\nclass TestA:\n    def test_a(self): ...\ndef test_b(): ...\n"
    assert list(marked_tests("test_a.py", one).values()) == ["skip", ""]
    every = "pytestmark = [pytest.mark.slow, pytest.mark.skip]\n" + one
    assert list(marked_tests("test_a.py", every).values()) == ["skip", "skip"]


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
