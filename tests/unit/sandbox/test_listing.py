"""The tests of a test file, read before anything runs."""

import pytest

from sandbox.graders.listing import is_test_file, list_tests

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
