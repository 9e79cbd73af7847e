"""Plain data in and out of the jail, by structure: what a value *is*, never what its methods say.

Encoding walks by the real base type (`type()`, the C-level methods of the base types) and calls nothing
that the judged program may have overridden. Text form: JSON, with one-key objects for what JSON lacks:

    {"t": […]} tuple   {"d": [[k, v], …]} dict   {"s": […]} set   {"z": […]} frozenset
    {"i": "-0x…"} an int beyond 53 bits   {"f": "nan" | "inf" | "-inf"}   {"b": hex} bytes

The names used here are bound before any judged code runs, so that replacing them in `builtins` or `json`
changes nothing here. More tags are added on the link between tester and answer (`link.py`).
"""

import json
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 200
EXACT_INT = 1 << 53
_type, _issubclass, _float, _int, _str, _bytes = type, issubclass, float, int, str, bytes
_list, _tuple, _dict, _set, _frozenset = list, tuple, dict, set, frozenset
_dumps = json.JSONEncoder(ensure_ascii=True, check_circular=False, separators=(",", ":")).encode


class NotPlain(Exception):
    """The value, or a part of it, is not plain data; or it is too deep or too large to hand over."""


class Encoder:
    """Turns one value into text of at most `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self.left = max_bytes
        self.max_bytes = max_bytes

    def encode(self, value: Any) -> bytes:
        """Encode, or raise NotPlain."""
        text = _dumps(self.walk(value, 0)).encode("ascii")
        if len(text) > self.max_bytes:
            raise NotPlain(f"the value is larger than {self.max_bytes} bytes")
        return text

    def walk(self, value: Any, depth: int) -> Any:
        """Build what `json` can write."""
        if value is None or value is True or value is False:
            return value
        if depth > MAX_DEPTH:
            raise NotPlain(f"the value is nested more than {MAX_DEPTH} deep")
        self.left -= 1
        if self.left < 0:
            raise NotPlain(f"the value is larger than {self.max_bytes} bytes")
        kind = _type(value)
        below = depth + 1
        if _issubclass(kind, _int):
            number = _int.__add__(value, 0)
            return number if -EXACT_INT <= number <= EXACT_INT else {"i": _int.__format__(number, "#x")}
        if _issubclass(kind, _float):
            number = _float.__float__(value)
            if number != number or number in (_float("inf"), _float("-inf")):
                return {"f": _float.__repr__(number)}
            return number
        if _issubclass(kind, _str):
            text = _str.__str__(value)
            self.left -= len(text)
            return text
        if _issubclass(kind, _list):
            return [self.walk(item, below) for item in _list.__iter__(value)]
        if _issubclass(kind, _tuple):
            return {"t": [self.walk(item, below) for item in _tuple.__iter__(value)]}
        if _issubclass(kind, _dict):
            pairs = _list(_dict.items(value))
            return {"d": [[self.walk(key, below), self.walk(item, below)] for key, item in pairs]}
        if _issubclass(kind, _set):
            return {"s": [self.walk(item, below) for item in _set.__iter__(value)]}
        if _issubclass(kind, _frozenset):
            return {"z": [self.walk(item, below) for item in _frozenset.__iter__(value)]}
        if _issubclass(kind, _bytes):
            raw = _bytes.__getitem__(value, slice(None))
            self.left -= len(raw)
            return {"b": _bytes.hex(raw)}
        return self.odd(value, kind, depth)

    def odd(self, value: Any, kind: type, depth: int) -> Any:
        """Build what `json` can write of a value that is no plain data; NotPlain."""
        raise NotPlain(f"a value of type {_type.__dict__['__name__'].__get__(kind)} is not plain data")


Tagged = Callable[[str, Any], Any]
Make = Callable[[str, "list[Any]"], Any]


def decode(text: bytes, make: "Make | None" = None, tagged: "Tagged | None" = None) -> Any:
    """Read what an Encoder wrote; ValueError if it is anything else. Makes exact base types only, but for `tagged`."""
    try:
        return build(json.loads(text), tagged or unknown, make)
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None


def unknown(tag: str, body: Any) -> Any:
    """Refuse every further tag."""
    raise ValueError(f"unknown tag {tag[:20]!r}")


def build(part: Any, tagged: Tagged, make: "Make | None" = None) -> Any:
    """Make a value of parsed JSON; tags that are not plain data go to `tagged`.

    `make` builds tuples, sets, frozensets and dicts (of pairs) by their tag, where not Python's own are wanted.
    """
    if isinstance(part, list):
        return [build(item, tagged, make) for item in part]
    if not isinstance(part, dict):
        return part
    if len(part) != 1:
        raise ValueError("an object with other than one key")
    ((tag, body),) = part.items()
    if tag in ("i", "f", "b"):
        if not isinstance(body, str):
            raise ValueError(f"{tag} wants text")
        if tag == "i":
            return int(body, 16)
        if tag == "b":
            return bytes.fromhex(body)
        if body not in ("nan", "inf", "-inf"):
            raise ValueError(f"not a number: {body[:20]}")
        return float(body)
    if tag not in ("t", "d", "s", "z"):
        return tagged(tag, body)
    if not isinstance(body, list):
        raise ValueError(f"{tag} wants a list")
    try:
        if tag == "d":
            items: list[Any] = [(build(key, tagged, make), build(item, tagged, make)) for key, item in body]
        else:
            items = [build(item, tagged, make) for item in body]
        return (make or _make)(tag, items)
    except TypeError as error:
        raise ValueError(f"not a key: {error}") from None


def _make(tag: str, items: "list[Any]") -> Any:
    return {"t": tuple, "s": set, "z": frozenset, "d": dict}[tag](items)
