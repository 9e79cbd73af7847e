"""Output against output. Pure; outside the jail.

CRLF = LF; blanks at line ends and empty lines at the end do not matter; then line by line, word by word; a decimal
number (point or exponent) to 1e-6 absolute or relative, also within a list's signs (`[0.30000000000000004,`); all
else identical.
"""

import math
import re

from sandbox.comparing.numbers import close

_DECIMAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.IGNORECASE)
_SIGNS = re.compile(r"([\[\](){},;:]+)")


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
    wanted = _SIGNS.split(expected)
    if len(wanted) == 1:
        return _same_part(actual, expected)
    got = _SIGNS.split(actual)
    return len(got) == len(wanted) and all(map(_same_part, got, wanted))


def _same_part(actual: str, expected: str) -> bool:
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
