"""Whether an answer is right: output against output, value against value. Pure; outside the jail.

Output: CRLF = LF; blanks at line ends and empty lines at the end do not matter; then line by line, word
by word; a decimal number (point or exponent) to 1e-6 absolute or relative, all other words identical.

Values: by structure. bool is not int, tuple = list, a set = a list in any order, an int key = the same
key as text. Nothing of what a value's methods say is involved: these are plain data already.
"""

import math
import re
from collections import Counter
from typing import Any, cast

TOLERANCE = 1e-6
_DECIMAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.IGNORECASE)
_EXACT_IN_FLOAT = 1 << 53
_MAX_UNMATCHED = 2000
"""Set members compared one against another beyond equal ones: keeps a hostile set from costing time."""


def same_output(actual: bytes, expected: str) -> bool:
    """Compare a program's standard output with the expected text."""
    try:
        text = actual.decode("utf-8")
    except UnicodeDecodeError:
        return False
    if text == expected:
        return True
    ours, theirs = _lines(text), _lines(expected)
    return len(ours) == len(theirs) and all(map(_same_line, ours, theirs))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip(" \t") for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_line(actual: str, expected: str) -> bool:
    if actual == expected:
        return True
    ours, theirs = _words(actual), _words(expected)
    return len(ours) == len(theirs) and all(map(_same_word, ours, theirs))


def _words(line: str) -> list[str]:
    return [word for word in line.replace("\t", " ").split(" ") if word]


def _same_word(actual: str, expected: str) -> bool:
    if actual == expected:
        return True
    if not _DECIMAL.fullmatch(expected):
        return False
    wanted = float(expected)
    if math.isinf(wanted) and "inf" not in expected.lower():
        return False  # a word like 123e4567, perhaps no number at all
    try:
        return close(float(actual), wanted) and "_" not in actual
    except ValueError:
        return False


def close(actual: float, expected: float) -> bool:
    """Whether two numbers agree to 1e-6, absolute or relative to the expected one; nan equals nothing."""
    if math.isinf(expected) or math.isinf(actual):
        return actual == expected
    return abs(actual - expected) <= TOLERANCE * max(1.0, abs(expected))


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


def same_value(actual: Any, expected: Any) -> bool:
    """Compare plain data (base types only) with what JSON said is expected."""
    if expected is None or isinstance(expected, bool):
        return actual is expected
    if isinstance(expected, str):
        return isinstance(actual, str) and actual == expected
    if isinstance(expected, int | float):
        return _same_number(actual, expected)
    if isinstance(expected, list):
        items = cast(list[Any], expected)
        if isinstance(actual, Members):
            return _same_set(actual, items)
        if isinstance(actual, list | tuple) and not isinstance(actual, Pairs):
            values = cast(list[Any], actual)
            return len(values) == len(items) and all(map(same_value, values, items))
        if isinstance(actual, set | frozenset):
            return _same_set(list(cast(set[Any], actual)), items)
        return False
    if isinstance(expected, dict) and isinstance(actual, dict | Pairs):
        pairs = actual if isinstance(actual, Pairs) else cast(dict[Any, Any], actual).items()
        return _same_mapping(list(pairs), cast(dict[str, Any], expected))
    return False


def _same_number(actual: Any, expected: Any) -> bool:
    if isinstance(actual, bool) or not isinstance(actual, int | float):
        return False
    if isinstance(expected, int):
        if isinstance(actual, int):
            return actual == expected
        # left open by the rules: a whole float where an int is expected, while a float can hold it
        return float(actual) == expected and abs(expected) <= _EXACT_IN_FLOAT
    try:
        return close(float(actual), expected)
    except OverflowError:
        return False


def _same_mapping(actual: list[tuple[Any, Any]], expected: dict[str, Any]) -> bool:
    if len(actual) != len(expected):
        return False
    seen: set[str] = set()
    for key, value in actual:
        if isinstance(key, bool) or not isinstance(key, str | int):
            return False
        name = str(key) if abs_digits(key) else ""
        if name in seen or name not in expected or not same_value(value, expected[name]):
            return False
        seen.add(name)
    return True


def abs_digits(key: "str | int") -> bool:
    """Whether a key can be written as text at all (Python refuses whole numbers of many digits)."""
    return isinstance(key, str) or key.bit_length() < 13_000


def _same_set(actual: list[Any], expected: list[Any]) -> bool:
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
    for item in wanted:
        match = next((one for one in left if same_value(one.value, item)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


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
        return ("dict", frozenset((str(key), _frozen(item)) for key, item in value))
    if isinstance(value, list | tuple):
        return ("list", *map(_frozen, cast(list[Any], value)))
    if isinstance(value, set | frozenset):
        return ("set", frozenset(map(_frozen, cast(set[Any], value))))
    if isinstance(value, dict):
        return ("dict", frozenset((str(key), _frozen(item)) for key, item in cast(dict[Any, Any], value).items()))
    if isinstance(value, int):
        return (type(value).__name__, format(value, "x"))
    return (type(value).__name__, repr(value) if isinstance(value, float) else value)
