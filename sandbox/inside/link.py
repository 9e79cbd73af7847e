"""Between the tester and the answer: two processes of one test, in one jail, under two users.

Test code that must be inside the jail never shares a process with the answer. It runs in the tester;
what it calls is a stand-in that asks the answer's process over a socket, and only plain data comes back
(`values.py`, by structure), or a handle to an object that stays there. So an answer cannot patch what the
tests use, walk their frames, end their process, or return an object whose methods lie.

One message: four bytes of length, then JSON. One request is answered before the next is sent, but for
callbacks: while the tester waits, the answer may call functions that it was given as arguments.
"""

import json
import socket
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any

from . import values

Json = dict[str, Any]
_SIZE = struct.Struct(">I")
MAX_MESSAGE_BYTES = 16 << 20
_dumps = json.JSONEncoder(ensure_ascii=True, check_circular=False).encode


class Closed(Exception):
    """The other process is gone."""


class Link:
    """One end."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)

    def send(self, message: Json) -> None:
        """Send one message."""
        text = _dumps(message).encode("ascii")
        try:
            self.socket.sendall(_SIZE.pack(len(text)) + text)
        except OSError:
            raise Closed from None

    def receive(self) -> Json:
        """Wait for one message; Closed at the end, ValueError for nonsense."""
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size))
        if size > MAX_MESSAGE_BYTES:
            raise ValueError("a message too large")
        try:
            message = json.loads(self._exactly(size))
        except RecursionError:
            raise ValueError("a message nested too deeply") from None
        if not isinstance(message, dict):
            raise ValueError("a message that is no object")
        return message

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            try:
                part = self.socket.recv(min(size, 1 << 20))
            except OSError:
                raise Closed from None
            if not part:
                raise Closed
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


# standard types that are data as well: (how to take apart an exact instance, how to make one)
_DATA: "dict[type, tuple[Callable[[Any], list[Any]], Callable[..., Any]]]" = {
    complex: (lambda value: [value.real, value.imag], complex),
    range: (lambda value: [value.start, value.stop, value.step], range),
    bytearray: (lambda value: [bytes(value)], bytearray),
    Decimal: (lambda value: [str(value)], Decimal),
    Fraction: (lambda value: [value.numerator, value.denominator], Fraction),
    date: (lambda value: [value.year, value.month, value.day], date),
    datetime: (
        lambda value: [value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond],
        datetime,
    ),
    time: (lambda value: [value.hour, value.minute, value.second, value.microsecond], time),
    timedelta: (lambda value: [value.days, value.seconds, value.microseconds], timedelta),
    deque: (lambda value: [list(value)], deque),
    Counter: (lambda value: [dict(value)], Counter),
    OrderedDict: (lambda value: [dict(value)], OrderedDict),
    defaultdict: (lambda value: [dict(value)], lambda content: defaultdict(None, content)),
}
_DATA_NAMES = {kind.__name__: make for kind, (_, make) in _DATA.items()}
_PLAIN = frozenset({int, float, str, list, tuple, dict, set, frozenset, bytes, bool, type(None)})
_type, _issubclass = type, issubclass


class Codec(values.Encoder):
    """Values on the link: exact base types and a few of the standard library travel; the rest is a handle.

    A value whose type is made by the answer (a subclass of `list`, a named tuple) is a handle that brings
    its real content along.
    """

    def __init__(self, handle: "Callable[[Any], Any]", from_handle: "Callable[[Any], Any]") -> None:
        super().__init__(MAX_MESSAGE_BYTES // 2)
        self.to_handle = handle
        self.from_handle = from_handle

    def pack(self, value: Any) -> Any:
        """Make what JSON can carry of one value."""
        self.left = self.max_bytes
        return self.walk(value, 0)

    def walk(self, value: Any, depth: int) -> Any:
        kind = _type(value)
        if kind in _PLAIN:
            return super().walk(value, depth)
        if kind in _DATA and getattr(value, "tzinfo", None) is None:
            return {"x": [kind.__name__, super().walk(_DATA[kind][0](value), depth + 1)]}
        if kind.__module__ == "pathlib":
            return {"x": ["Path", super().walk([str(value)], depth + 1)]}
        content = None
        if _issubclass(kind, (int, float, str, list, tuple, dict, set, frozenset, bytes)):
            content = {"c": super().walk(value, depth)}
        return {"h": [self.to_handle(value), content]}

    def unpack(self, part: Any) -> Any:
        """Make the value again."""
        try:
            return values.build(part, self.handled)
        except RecursionError:
            raise ValueError("a value nested too deeply") from None

    def handled(self, tag: str, body: Any) -> Any:
        """Tags beyond those of plain data."""
        if tag == "h":
            return self.from_handle(body)
        if tag == "x":
            name, parts = body
            if name == "Path":
                return import_module("pathlib").Path(*self.unpack(parts))
            return _DATA_NAMES[name](*self.unpack(parts))
        raise ValueError(f"unknown tag {tag[:20]!r}")
