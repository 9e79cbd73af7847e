"""Outputs and values compared outside the jail."""

from typing import Any

import pytest

from sandbox.graders.compare import same_output, same_value


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        (b"1 2\n", "1 2", True),
        (b"1 2\r\n3 \t\n\n\n", "1 2\n3\n", True),
        (b"1\n", "1\n2\n", False),
        (b"1\n2\n3\n", "1\n2\n", False),
        (b"0.3333333\n", "0.33333333333\n", True),
        (b"1000001.0\n", "1000000.0\n", True),
        (b"1000002.3\n", "1000000.0\n", False),
        (b"1000001\n", "1000000\n", False),
        (b"nan\n", "1.5\n", False),
        (b"nan\n", "nan\n", True),
        (b"inf\n", "inf\n", True),
        (b"-inf\n", "inf\n", False),
        (b"1e400\n", "1.5\n", False),
        (b"-0.0\n", "0.0\n", True),
        (b"1_0.0\n", "10.0\n", False),
        (b"Yes\n", "yes\n", False),
        (b"a\x00b\n", "a\n", False),
        (b"\xff\n", "\ufffd\n", False),
        (b"", "\n", True),
        ("gr\u00f6\u00dfer \U0001f600".encode(), "gr\u00f6\u00dfer \U0001f600\n", True),
    ],
)
def test_output(actual: bytes, expected: str, same: bool) -> None:
    assert same_output(actual, expected) is same


NAN = float("nan")


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        (1, 1, True),
        (True, 1, False),
        (1, True, False),
        (0, False, False),
        (None, None, True),
        (0, None, False),
        ("", None, False),
        (10**30, 10**30, True),
        (10**30 + 1, 10**30, False),
        (float(10**30), 10**30, False),
        (3.0, 3, True),
        (0.1 + 0.2, 0.3, True),
        (NAN, 1.0, False),
        (NAN, NAN, False),
        (float("inf"), 1e300, False),
        (10**400, 1.0, False),
        ((1, (2,)), [1, [2]], True),
        ([1, 2], [1, 2, 3], False),
        ({3, 1, 2}, [1, 2, 3], True),
        ({1.0000001, 2}, [2, 1.0], True),
        ({1, 2}, [1, 2, 2], False),
        (frozenset({(1, 2)}), [[1, 2]], True),
        ({1: "a", 2: "b"}, {"1": "a", "2": "b"}, True),
        ({1: "a", "1": "a"}, {"1": "a"}, False),
        ({1: "a", "1": "a"}, {"1": "a", "2": "a"}, False),
        ({True: "a"}, {"True": "a"}, False),
        ({"a": [1.0, {"b": 2.00000001}]}, {"a": [1.0, {"b": 2.0}]}, True),
        ({"a": [1.0, {"b": 2.1}]}, {"a": [1.0, {"b": 2.0}]}, False),
        (b"a", "a", False),
    ],
)
def test_value(actual: Any, expected: Any, same: bool) -> None:
    assert same_value(actual, expected) is same


def test_a_large_hostile_set_takes_no_quadratic_time() -> None:
    assert not same_value({float(n) + 0.5 for n in range(100_000)}, [float(n) for n in range(100_000)])
