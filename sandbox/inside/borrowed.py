"""In the answer: what stands for an object of the test's own that was lent to it. See `lending.py`."""

import builtins
from collections.abc import Callable
from typing import Any

Ask = Callable[..., Any]
"""(number, operation, arguments, named) → what came of it."""


class Borrowed:
    """An object that stays with the test: whatever is done to it is done there."""

    def __init__(self, number: int, ask: Ask) -> None:
        object.__setattr__(self, "_lent", number)
        object.__setattr__(self, "_ask", ask)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _ask(self, "getattr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "setattr", name, value)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return object.__getattribute__(self, "_ask")(number_of(self), "call", arguments, named)

    def __hash__(self) -> int:
        return _ask(self, "hash")

    def __exit__(self, *error: Any) -> Any:
        return _ask(self, "exit")

    def __instancecheck__(self, value: object) -> bool:
        return _ask(self, "isinstance", value)


def _ask(borrowed: Borrowed, operation: str, *arguments: Any) -> Any:
    return object.__getattribute__(borrowed, "_ask")(number_of(borrowed), operation, arguments, {})


def number_of(borrowed: Borrowed) -> int:
    """By which the test knows it."""
    return object.__getattribute__(borrowed, "_lent")


def _give(name: str, operation: str) -> None:
    def method(self: Borrowed, *arguments: Any) -> Any:
        return _ask(self, operation, *arguments)

    setattr(Borrowed, f"__{name}__", method)


_NAMES = (
    "len iter next repr str format bool int float index reversed round abs enter getitem setitem delitem contains eq "
    "ne lt le gt ge neg pos invert add sub mul truediv floordiv mod pow matmul xor lshift rshift iadd isub imul"
)
for _name in _NAMES.split():
    _give(_name, _name)


def exception_class(number: int, name: str, bases: "list[str]") -> type:
    """Make an exception class that stands for one of the test's."""
    base = next((getattr(builtins, one) for one in bases if isinstance(getattr(builtins, one, None), type)), Exception)
    return type(name, (base,), {"_lent_class": number})
