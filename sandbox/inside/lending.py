"""In the tester: objects of the test's own that are lent to the answer, and what the answer may do with them.

A lent object stays here; the answer has something that asks for what it wants done. Functions may be called,
iterators asked for the next item; of objects that the test's files define, of mocks and of streams in memory the
plain attributes may be read. Nothing leads from them to what the test expects: no name that begins with `_`, no frame,
no module, nothing by which a mock is told what to remember.
"""

import functools
import io
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from .operations import OPERATIONS

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, functools.partial, type(functools.lru_cache(len)))
_STREAM_NAMES = (
    "close closed encoding flush getvalue isatty mode name read readable readline readlines seek seekable tell "
    "truncate writable write writelines"
)
_STREAM = frozenset(_STREAM_NAMES.split())
_MOCK_NAMES = (
    "attach_mock await_args await_args_list await_count call_args call_args_list call_count called configure_mock "
    "method_calls mock_add_spec mock_calls reset_mock return_value side_effect"
)
_OF_MOCKS = frozenset(_MOCK_NAMES.split())
_ANY = ("bool", "str", "repr", "eq", "ne", "hash")
_OPERATIONS = {
    "function": ("call", *_ANY),
    "iterator": ("next", "iter", *_ANY),
    "class": ("call", "isinstance", "getattr", *_ANY),
    "stream": ("getattr", "iter", "next", "enter", "exit", *_ANY),
    "mock": tuple(OPERATIONS),
    "object": tuple(OPERATIONS),
}


class NotLent(TypeError):
    """The object cannot be handed to the answer, or what it wants of it is not to be had."""


def kind_of(value: Any, test_modules: "frozenset[str]") -> str:
    """What kind of lent object a value is; NotLent."""
    if isinstance(value, type):
        if value.__module__ in test_modules:
            return "class"
    elif isinstance(value, _FUNCTIONS):
        return "function"
    elif is_mock(value):
        return "mock"
    elif isinstance(value, io.IOBase):
        return "stream"
    elif type(value).__module__ in test_modules:
        return "object"
    elif isinstance(value, Iterator):
        return "iterator"
    elif callable(value):
        return "function"
    raise NotLent(f"a {type(value).__name__} cannot be handed to the answer")


def is_mock(value: Any) -> bool:
    """Whether it is a mock of unittest's."""
    mock = sys.modules.get("unittest.mock")
    return mock is not None and isinstance(value, mock.NonCallableMock)


def perform(value: Any, kind: str, operation: str, arguments: "list[Any]", named: "dict[str, Any]") -> Any:
    """Do to a lent object what the answer wants done; NotLent."""
    if operation not in _OPERATIONS[kind]:
        raise NotLent(f"a {kind} that is lent to the answer has no {operation}")
    if operation in ("getattr", "setattr", "delattr"):
        check_name(arguments[0], kind)
    elif operation == "isinstance":
        return isinstance(arguments[0], value)
    return OPERATIONS[operation](value, *arguments, **named)


def check_name(name: object, kind: str) -> None:
    """Refuse an attribute that leads anywhere but to the object's own."""
    allowed = isinstance(name, str) and not name.startswith("_")
    if kind == "stream":
        allowed = name in _STREAM
    elif kind == "mock":
        allowed = allowed and name not in _OF_MOCKS and not str(name).startswith("assert")
    if not allowed:
        raise NotLent(f"the answer has no use of {name!r} of a lent {kind}")
