"""Value against value: plain data that a program handed over, against what a task expects. Pure; outside the jail.

By structure. bool is not int, tuple = list, a set = a list in any order; keys as JSON writes them (1, 1.5, true,
null); Decimal and Fraction are numbers. Nothing of what a value's methods say is involved: this is plain data.
"""

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from sandbox.comparing.numbers import TOLERANCE, close
from schemas import CompareValues

_EXACT_IN_FLOAT = 1 << 53
_MAX_UNMATCHED = 2000
"""Set members compared one against another beyond equal ones: keeps a hostile set from costing time."""


class Members(list[Any]):
    """The members of a set, not in a hash table: whoever chooses whole numbers can make one very slow."""

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self)) + "}"


class Pairs(list[Any]):
    """The items of a dict, for the same reason."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {value!r}" for key, value in self) + "}"


def untrusted(tag: str, items: list[Any]) -> Any:
    """Make a value that a judged program handed over (`decode`'s `make`)."""
    return tuple(items) if tag == "t" else Pairs(items) if tag == "d" else Members(items)


@dataclass(frozen=True)
class Comparison:
    """How values are compared: the mode as `schemas/graders.py` says, numbers to a tolerance."""

    mode: CompareValues = "exact"
    tolerance: float | None = None
    """None: TOLERANCE."""

    def accepts(self, actual: Any, expected: Any) -> bool:
        """Whether a value is right."""
        if self.mode == "one_of":
            return isinstance(expected, list) and any(self._same(actual, one) for one in cast(list[Any], expected))
        if self.mode == "exact" or not isinstance(expected, list):
            return self._same(actual, expected)
        items, values = cast(list[Any], expected), _items(actual)
        if values is None:
            return False
        if self.mode == "set":
            return self._same_set(_distinct(values), _distinct(items))
        if self.mode == "any_order_deep":
            return _unordered(actual) == _unordered(expected) or self._same_set(values, items, deep=True)
        return self._same_set(values, items)

    def _same(self, actual: Any, expected: Any) -> bool:
        if expected is None or isinstance(expected, bool):
            return actual is expected
        if isinstance(expected, str):
            return isinstance(actual, str) and actual == expected
        if isinstance(expected, int | float):
            return self._same_number(actual, expected)
        if isinstance(expected, list):
            items = cast(list[Any], expected)
            if isinstance(actual, Members | set | frozenset):
                return self._same_set(list(cast(list[Any], actual)), items)
            values = _items(actual)
            return values is not None and len(values) == len(items) and all(map(self._same, values, items))
        if isinstance(expected, dict) and isinstance(actual, dict | Pairs):
            pairs = actual if isinstance(actual, Pairs) else cast(dict[Any, Any], actual).items()
            return self._same_mapping(list(pairs), cast(dict[str, Any], expected))
        return False

    def _same_number(self, actual: Any, expected: "int | float") -> bool:
        if isinstance(actual, bool) or not isinstance(actual, int | float | Decimal | Fraction):
            return False
        if isinstance(expected, int):
            if not isinstance(actual, float):
                return actual == expected
            # left open by the rules: a whole float where an int is expected, while a float can hold it
            return float(actual) == expected and abs(expected) <= _EXACT_IN_FLOAT
        try:
            return close(float(actual), expected, TOLERANCE if self.tolerance is None else self.tolerance)
        except (OverflowError, ValueError):
            return False

    def _same_mapping(self, actual: list[tuple[Any, Any]], expected: dict[str, Any]) -> bool:
        if len(actual) != len(expected):
            return False
        seen: set[str] = set()
        for key, value in actual:
            name = next((name for name in written(key) if name in expected), None)
            if name is None or name in seen or not self._same(value, expected[name]):
                return False
            seen.add(name)
        return True

    def _same_set(self, actual: list[Any], expected: list[Any], *, deep: bool = False) -> bool:
        if len(actual) != len(expected):
            return False
        ours, theirs = Counter(map(_frozen, actual)), Counter(map(_frozen, expected))
        if ours == theirs:
            return True
        # what is not identical may still be close: floats. Each expected item takes one actual item
        left = [_Item(item) for item in actual if _take(theirs, item)]
        wanted = [item for item in expected if _take(ours, item)]
        if len(wanted) > _MAX_UNMATCHED:
            return False
        same = Comparison("any_order_deep", self.tolerance).accepts if deep else self._same
        for item in wanted:
            match = next((one for one in left if same(one.value, item)), None)
            if match is None:
                return False
            left.remove(match)
        return not left


def written(key: Any) -> tuple[str, ...]:
    """Write a key as JSON does; a float that is whole also as the int that it equals in Python. None: no JSON."""
    if isinstance(key, str):
        return (key,)
    if key is None or isinstance(key, bool):
        return ({None: "null", True: "true", False: "false"}[key],)
    if isinstance(key, int):
        return (str(key),) if key.bit_length() < 13_000 else ()  # Python writes no whole number of so many digits
    if isinstance(key, float):
        whole = (str(int(key)),) if math.isfinite(key) and key.is_integer() and abs(key) < _EXACT_IN_FLOAT else ()
        return (repr(key), *whole)
    return ()


def _items(value: Any) -> list[Any] | None:
    """The items of what compares as a list."""
    if isinstance(value, list | tuple | set | frozenset) and not isinstance(value, Pairs):
        return list(cast(list[Any], value))
    return None


def _distinct(items: list[Any]) -> list[Any]:
    return list({_frozen(item): item for item in items}.values())


def _unordered(value: Any) -> Any:
    """Build a stand-in for lists within lists, in which no order is left."""
    items = _items(value)
    return _frozen(value) if items is None else ("bag", frozenset(Counter(map(_unordered, items)).items()))


class _Item:
    """Wraps a value so that removing it from a list goes by identity."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _take(counts: Counter[Any], item: Any) -> bool:
    """Take an equal item out of `counts`; True when there was none."""
    key = _frozen(item)
    if counts[key] > 0:
        counts[key] -= 1
        return False
    return True


def _frozen(value: Any) -> Any:
    """Build a hashable stand-in: equal ones mean equal values. Numbers are text in it, as text hashes by chance."""
    if isinstance(value, Members):
        return ("set", frozenset(map(_frozen, value)))
    if isinstance(value, Pairs):
        return ("dict", frozenset((_key(key), _frozen(item)) for key, item in value))
    if isinstance(value, list | tuple):
        return ("list", *map(_frozen, cast(list[Any], value)))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(map(_frozen, cast(set[Any], value))))
    if isinstance(value, dict):
        return ("dict", frozenset((_key(key), _frozen(item)) for key, item in cast(dict[Any, Any], value).items()))
    if isinstance(value, int):
        return (type(value).__name__, format(value, "x"))
    return (type(value).__name__, repr(value) if isinstance(value, float | Decimal | Fraction) else value)


def _key(key: Any) -> Any:
    names = written(key)
    return names[0] if names else _frozen(key)
