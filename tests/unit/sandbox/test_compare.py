"""Outputs and values compared outside the jail."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from sandbox.comparing.output import same_output
from sandbox.comparing.values import Comparison
from schemas import CompareValues


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
        # numbers within a list's signs
        (b"[0.30000000000000004, 1.0]\n", "[0.3, 1.0]\n", True),
        (b"(0.1, [2.0000001], 3)\n", "(0.1, [2.0], 3)\n", True),
        (b'{"a": 0.30000000000000004}\n', '{"a": 0.3}\n', True),
        (b"[0.3, 1]\n", "[0.3, 2]\n", False),
        (b"[0.31, 1.0]\n", "[0.3, 1.0]\n", False),
        (b"[0.3 1.0]\n", "[0.3, 1.0]\n", False),
        (b"(0.3)\n", "[0.3]\n", False),
        (b"1E+2\n", "100.0\n", True),
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
        # keys as JSON writes them
        ({1.5: 0, 2.5: 1}, {"1.5": 0, "2.5": 1}, True),
        ({True: 2, False: 1}, {"true": 2, "false": 1}, True),
        ({None: 1}, {"null": 1}, True),
        ({None: 1}, {"None": 1}, False),
        ({1.0: "a"}, {"1": "a"}, True),
        ({1.0: "a"}, {"1.0": "a"}, True),
        ({1: "a", 1.5: "b", None: "c"}, {"1": "a", "1.5": "b", "null": "c"}, True),
        ({1.0: "a", "1": "a"}, {"1": "a", "1.0": "a"}, True),
        ({(1, 2): "a"}, {"(1, 2)": "a"}, False),
        ({NAN: 1}, {"NaN": 1}, False),
        ({float("inf"): 1}, {"inf": 1}, True),
        # decimals and fractions are numbers
        (Decimal("0.1"), 0.1, True),
        (Decimal("2.00"), 2, True),
        (Decimal("2.5"), 2, False),
        (Decimal("NaN"), 1.0, False),
        (Decimal("sNaN"), 1.0, False),
        (Decimal("1E+999999"), 1.0, False),
        (Decimal("1E+999999"), 5, False),
        (Fraction(1, 2), 0.5, True),
        (Fraction(4, 2), 2, True),
        (Fraction(1, 3), 0.333, False),
        ([Fraction(1, 2), Decimal(1)], [0.5, 1], True),
        (Decimal(1), True, False),
    ],
)
def test_value(actual: Any, expected: Any, same: bool) -> None:
    assert Comparison().accepts(actual, expected) is same


def test_a_large_hostile_set_takes_no_quadratic_time() -> None:
    assert not Comparison().accepts({float(n) + 0.5 for n in range(100_000)}, [float(n) for n in range(100_000)])


@pytest.mark.parametrize(
    ("mode", "actual", "expected", "same"),
    [
        ("any_order", [3, 1, 2], [1, 2, 3], True),
        ("any_order", [(2, 3), (0, 1)], [[0, 1], [2, 3]], True),
        ("any_order", [[1, 2], [3]], [[3], [2, 1]], False),
        ("any_order", [1, 1, 2], [1, 2, 2], False),
        ("any_order", [0.1 + 0.2, 1], [1, 0.3], True),
        ("any_order", 3, 3, True),
        ("any_order", {1: 2}, [1], False),
        ("any_order_deep", [[1, 2], [3]], [[3], [2, 1]], True),
        ("any_order_deep", [[1, 2], [3]], [[3], [1, 1]], False),
        ("any_order_deep", [[0.1 + 0.2, 1.0], [3]], [[3], [1.0, 0.3]], True),
        ("any_order_deep", [["eat", "tea"], ["bat"]], [["bat"], ["tea", "eat"]], True),
        ("set", [1, 1, 2], [2, 1], True),
        ("set", {1, 2}, [2, 1, 1], True),
        ("set", [1, 2, 3], [1, 2], False),
        ("one_of", "bab", ["bab", "aba"], True),
        ("one_of", "aba", ["bab", "aba"], True),
        ("one_of", ["bab", "aba"], ["bab", "aba"], False),
        ("one_of", [1, 2], [[2, 1], [1, 2]], True),
    ],
)
def test_modes(mode: CompareValues, actual: Any, expected: Any, same: bool) -> None:
    assert Comparison(mode).accepts(actual, expected) is same


@pytest.mark.parametrize(
    ("tolerance", "actual", "expected", "same"),
    [
        (0.01, 3.14, 3.141592, True),
        (0.0, 0.1 + 0.2, 0.3, False),
        (1e-9, 1.0000001, 1.0, False),
        (0.5, [1.4, [2.4]], [1.0, [2.0]], True),
        (0.5, 1, 2, False),
        (0.1, 1050.0, 1000.0, True),
    ],
)
def test_a_tolerance_of_the_tasks(tolerance: float, actual: Any, expected: Any, same: bool) -> None:
    assert Comparison(tolerance=tolerance).accepts(actual, expected) is same


def test_no_mode_takes_quadratic_time_on_a_hostile_list() -> None:
    ours, theirs = [float(n) + 0.5 for n in range(50_000)], [float(n) for n in range(50_000)]
    assert not Comparison("any_order").accepts(ours, theirs)
    assert not Comparison("set").accepts(ours, theirs)
    assert not Comparison("any_order_deep").accepts(ours, theirs)
