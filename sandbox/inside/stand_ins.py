"""In the tester: what stands for the answer and its objects. See `link.py`."""

import operator
import types
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .link import Json
from .remote import Remote

__tracebackhide__ = True
"""No frame of ours in what pytest shows."""

_KINDS = {"function": types.FunctionType, "method": types.MethodType, "generator": types.GeneratorType}
_THERE = frozenset(("__doc__", "__name__", "__qualname__", "__module__", "__annotations__", "__wrapped__", "__dict__"))
"""Attributes that every object here has, asked for there."""


class StandIn:
    """An object that stays with the answer. Whatever is done to it is done there, but for this:

    - A value whose type the answer made of a plain one (a subclass of `list`) is compared and computed with
      by its real content, here.
    - Other objects never learn what they are compared with. They equal no plain data; ordering them
      against it, or computing with it to get plain data, is a TypeError. So `abs(f(2) - 3) < 1e-6` cannot be
      answered by the methods of what `f` returned.
    - An object that the test did not make itself, by calling a class (a name with a capital), may stand where
      plain data belongs. It does not answer methods of plain data that take an operand (`startswith`,
      `union`), and `in` goes through its items.

    Two objects of the answer's are compared there.
    """

    def __init__(self, remote: Remote, handle: Json, content: Any) -> None:
        object.__setattr__(self, "_remote", remote)
        object.__setattr__(self, "_handle", handle)
        object.__setattr__(self, "_content", content)

    @property
    def __class__(self) -> Any:  # pyright: ignore - so that `isinstance(value, tuple)` holds for a named tuple
        content = content_of(self)
        return _KINDS.get(_kind(self), StandIn) if content is None else type(content)

    def __getattribute__(self, name: str) -> Any:
        if name in _THERE and content_of(self) is None:
            return _ask(self, "getattr", name)
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        content = content_of(self)
        if content is not None and hasattr(content, name):
            return getattr(content, name)
        value = _ask(self, "getattr", name)
        if isinstance(value, StandIn):
            remote, own, number = remote_of(self), _number_of(self), _number_of(value)
            if own in remote.made:
                remote.made.add(number)
            elif own in remote.makers or _kind(value) == "class":
                remote.learn(name if _kind(value) == "class" else "Maker", value)
            elif name in _PLAIN_METHODS:
                return _without_operands(value, name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "setattr", name, value)

    def __delattr__(self, name: str) -> None:
        _ask(self, "delattr", name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        remote = remote_of(self)
        value = remote.ask("call", self, *arguments, **named)
        if isinstance(value, StandIn) and _number_of(self) in remote.makers:
            remote.made.add(_number_of(value))
        return value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StandIn):
            return _truth(_ask(self, "eq", other))
        content = content_of(self)
        return content is not None and bool(content == other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        content = content_of(self)
        if content is not None:
            return hash(content)
        return _exactly(_ask(self, "hash"), int) if _kind(self) == "object" else hash(_number_of(self))

    def __bool__(self) -> bool:
        return _truth(_ask(self, "bool"))

    def __len__(self) -> int:
        return _exactly(_ask(self, "len"), int)

    def __int__(self) -> int:
        return _exactly(_ask(self, "int"), int)

    def __float__(self) -> float:
        return _exactly(_ask(self, "float"), float)

    def __index__(self) -> int:
        return _exactly(_ask(self, "index"), int)

    def __repr__(self) -> str:
        return _exactly(_ask(self, "repr"), str)

    def __str__(self) -> str:
        return _exactly(_ask(self, "str"), str)

    def __format__(self, specification: str) -> str:
        return _exactly(_ask(self, "format", specification), str)

    def __iter__(self) -> "Iterator[Any]":
        content = content_of(self)
        return _ask(self, "iter") if content is None else iter(content)

    def __next__(self) -> Any:
        return _ask(self, "next")

    def __contains__(self, item: object) -> bool:
        if content_of(self) is None and _number_of(self) in remote_of(self).made:
            return _truth(_ask(self, "contains", item))
        return any(one is item or one == item for one in self)

    def __enter__(self) -> Any:
        return _ask(self, "enter")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        return _ask(self, "exit", *(() if kind is None else (kind, str(error))))

    def __aiter__(self) -> Any:
        return _ask(self, "aiter")

    async def __anext__(self) -> Any:
        return _ask(self, "anext")

    async def __aenter__(self) -> Any:
        return _ask(self, "aenter")

    async def __aexit__(self, *_: object) -> Any:
        return _ask(self, "aexit")

    def __mro_entries__(self, _: Any) -> "tuple[type, ...]":
        return (type.__new__(_Deriving, "Base", (), {"_base": self}),)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, StandIn) and _truth(remote_of(value).ask("isinstance", value, self))


async def awaited(stand_in: StandIn) -> Any:
    """Wait for a coroutine of the answer's: it runs to its end there."""
    return _ask(stand_in, "await")


class _Deriving(type):
    """Makes, of a class of the test's that derives from one of the answer's, a class there with methods of ours."""

    def __new__(cls, name: str, bases: "tuple[Any, ...]", body: "dict[str, Any]") -> Any:
        base = bases[0]._base
        if "__classcell__" in body:
            raise TypeError("a class of the test's that derives from one of the answer's cannot call super()")
        own = {key: value for key, value in body.items() if key not in ("__module__", "__qualname__", "__doc__")}
        value = remote_of(base).ask("derive", base, name, own)
        remote_of(base).learn("Maker", value)
        return value


def remote_of(stand_in: StandIn) -> Remote:
    """The process that has it."""
    return object.__getattribute__(stand_in, "_remote")


def content_of(stand_in: StandIn) -> Any:
    """The plain data that it is, or None."""
    return object.__getattribute__(stand_in, "_content")


def _number_of(stand_in: StandIn) -> int:
    return object.__getattribute__(stand_in, "_handle")["id"]


def _kind(stand_in: StandIn) -> str:
    return object.__getattribute__(stand_in, "_handle")["kind"]


def _ask(stand_in: StandIn, operation: str, *arguments: Any) -> Any:
    return remote_of(stand_in).ask(operation, stand_in, *arguments)


def _truth(value: Any) -> bool:
    return _exactly(value, bool)


def _exactly(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"the answer gave something that is no {kind.__name__}")
    return value


_PLAIN_METHODS = frozenset(
    name
    for kind in (str, bytes, list, tuple, dict, set, frozenset, int, float)
    for name in dir(kind)
    if not name.startswith("__")
)


def _without_operands(method: StandIn, name: str) -> Any:
    def call(*arguments: Any, **named: Any) -> Any:
        if arguments or named:
            raise TypeError(f"the answer returned an object of its own where plain data with {name}() belongs")
        return method()

    return call


def _unary(name: str) -> None:
    def ours(self: StandIn, *arguments: Any) -> Any:
        return _ask(self, name, *arguments)

    setattr(StandIn, f"__{name}__", ours)


def _binary(name: str, compute: Any, operation: str, *, swapped: bool = False, ordering: bool = False) -> None:
    def ours(self: StandIn, other: Any) -> Any:
        content = content_of(self)
        if content is not None:
            return compute(other, content) if swapped else compute(content, other)
        apart = not isinstance(other, StandIn)
        if apart and ordering:
            raise TypeError("an object of the answer's own is not ordered against plain data")
        value = remote_of(self).ask(operation, other, self) if swapped else _ask(self, operation, other)
        if not isinstance(value, StandIn):
            if apart:
                raise TypeError("an object of the answer's own does not compute plain data from plain data")
        elif _number_of(self) in remote_of(self).made:
            remote_of(self).made.add(_number_of(value))
        return value

    setattr(StandIn, name, ours)


for _name in "getitem setitem delitem neg pos invert reversed round abs".split():  # noqa: SIM905 - the names, not a list
    _unary(_name)
for _name in "lt le gt ge".split():  # noqa: SIM905
    _binary(f"__{_name}__", getattr(operator, _name), _name, ordering=True)
for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():  # noqa: SIM905
    _operation = f"{_name}_" if _name in ("and", "or") else _name
    _binary(f"__{_name}__", getattr(operator, _operation), _operation)
    _binary(f"__r{_name}__", getattr(operator, _operation), _operation, swapped=True)


class AnswerModule(ModuleType):
    """Stands for the answer's module: `from solution import name`; patching it patches the answer's."""

    def __init__(self, name: str, remote: Remote, names: "list[str]") -> None:
        super().__init__(name)
        self.__dict__["_remote"] = remote
        self.__dict__["_answer_module"] = True
        self.__all__ = [name for name in names if not name.startswith("_")]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__["_remote"].name(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            self.__dict__["_remote"].ask("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self.__dict__["_remote"].ask("delattr", self, name)
