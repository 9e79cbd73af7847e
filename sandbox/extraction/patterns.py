"""Regular expressions of a task's, on text that a model wrote: always within a time limit. Pure.

Python's `re` can take exponential time, and nothing can stop it. `regex` (the same syntax) stops at a limit; a
pattern that reaches it is tried by RE2, which takes time in proportion to the text, where it knows the pattern.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

LIMIT_SECONDS = 1.0


class PatternTimeout(Exception):
    """The pattern took longer than LIMIT_SECONDS on this text, and RE2 does not know it."""


def find_last(pattern: str, text: str) -> str | None:
    """Return the last match: its first group that took part, else all of it; None where nothing matches.

    ValueError for a pattern that is none; PatternTimeout.
    """
    found = list(_matches(pattern, text))
    return found[-1] if found else None


def find_first(pattern: str, text: str) -> str | None:
    """Return the first match, as `find_last` does the last."""
    return next(iter(_matches(pattern, text)), None)


def _matches(pattern: str, text: str) -> Iterator[str]:
    import regex

    try:
        compiled = _compiled(pattern)
    except regex.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    try:
        found = [_found(match) for match in compiled.finditer(text, timeout=LIMIT_SECONDS, concurrent=True)]
    except TimeoutError:
        found = [_found(match) for match in _linear(pattern).finditer(text)]
    yield from found


def _found(match: Any) -> str:
    return next((group for group in match.groups() if group is not None), "" if match.re.groups else match.group())


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import regex

    return regex.compile(pattern)


def _linear(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise PatternTimeout(f"the pattern takes more than {LIMIT_SECONDS} s") from None
