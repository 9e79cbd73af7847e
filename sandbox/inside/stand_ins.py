"""In the tester: what stands for the answer and its objects. See `link.py`."""

import builtins
import operator
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .link import Closed, Codec, Json, Link

__tracebackhide__ = True
"""No frame of ours in what pytest shows."""


class AnswerEnded(BaseException):
    """The answer's process ended, or broke the protocol, while a test waited for it: no error that a test expects."""


_NOT_AN_ERROR = ("KeyboardInterrupt", "GeneratorExit")
_EXCEPTIONS = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, (Exception, SystemExit))
}


class Remote:
    """The answer's process, as the tester sees it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.codec = Codec(self.lend, self.from_handle)
        self.lent: list[Any] = []
        self.kinds: dict[int, type] = {}
        self.last_error = ""
        self.ended = False
        """A test in which this becomes true has failed, whatever it caught."""
        self.makers: set[int] = set()
        """Classes, by a name with a capital, and their own methods: what they return, the test has made."""
        self.made: set[int] = set()

    def name(self, name: str) -> Any:
        """Fetch a global of the answer's module."""
        value = self.ask("name", name)
        if isinstance(value, StandIn) and _kind(value) == "class":
            self.learn(name, value)
        return value

    def learn(self, name: str, value: "StandIn") -> None:
        """Note a class, if the test calls it by a class's name."""
        if name[:1].isupper():
            self.makers.add(_number_of(value))

    def lend(self, value: Any) -> Any:
        """Hand out an object: one of the answer's own goes back as itself; a function may be called back."""
        if isinstance(value, StandIn):
            return {"id": _number_of(value)}
        about = getattr(value, "_answer_class", None)
        if about is not None:
            return {"id": about}
        if not callable(value):
            raise TypeError(f"a {type(value).__name__} cannot be handed to the answer: only plain data and functions")
        self.lent.append(value)
        return {"lent": len(self.lent) - 1}

    def from_handle(self, body: Any) -> Any:
        """Stand in for an object of the answer's."""
        about, content = body
        if about["kind"] == "exception":
            return self.exception_class(about["id"], about["bases"])
        if about.get("module") in sys.stdlib_module_names:
            return __import__(about["module"])  # ours, not the answer's
        return StandIn(self, about, self.codec.unpack(content["c"]) if content else None)

    def ask(self, operation: str, *arguments: Any, **named: Any) -> Any:
        """Have one thing done over there."""
        capture = sys.stdout is not sys.__stdout__
        request = {
            "operation": operation,
            "arguments": self.codec.pack(list(arguments)),
            "named": {name: self.codec.pack(value) for name, value in named.items()},
            "capture": capture,
        }
        try:
            self.link.send(request)
        except Closed:
            self.ended = True
            raise AnswerEnded("the answer's process ended before it was asked") from None
        reply = self.reply()
        if capture and isinstance(reply.get("printed"), str):
            sys.stdout.write(reply["printed"])
        for index, part in reply.get("changed", {}).items():
            replace(arguments[int(index)], self.codec.unpack(part))
        return self.codec.unpack(reply["value"])

    def reply(self) -> Json:
        """Wait for the reply, answering callbacks meanwhile; raise what the answer raised."""
        while True:
            try:
                message = self.link.receive()
                if "callback" in message:
                    self.link.send(self.called_back(message))
                    continue
            except Exception:  # noqa: BLE001 - whatever the answer did to the link
                self.ended = True
                raise AnswerEnded("the answer's process ended before it answered") from None
            if "raised" in message:
                raise self.error(message["raised"])
            return message

    def called_back(self, message: Json) -> Json:
        """Call a function that we lent."""
        function = self.lent[message["callback"]]
        try:
            return {"value": self.codec.pack(function(*self.codec.unpack(message["arguments"])))}
        except Exception as error:  # noqa: BLE001 - handed to the answer, whose call it was
            return {"raised": type(error).__name__, "message": str(error)}

    def error(self, about: Json) -> BaseException:
        """Make the exception that the answer raised, of a built-in type or of a class that stands for its own."""
        self.last_error = str(about["described"])
        bases = about["bases"]
        if any(name in _NOT_AN_ERROR for name in bases):
            return AnswerEnded(f"the answer left with {bases[0]}")
        if bases[0] in _EXCEPTIONS:
            kind = _EXCEPTIONS[bases[0]]
            arguments = about["arguments"]
            try:
                return kind(*arguments)
            except TypeError:  # UnicodeDecodeError and its like want arguments of their own
                return RuntimeError(f"{bases[0]}: {arguments}")
        error = self.exception_class(about["class"], bases)(*about["arguments"])
        error.__dict__["_stand_in"] = StandIn(self, about["object"], None)
        return error

    def exception_class(self, number: int, bases: "list[str]") -> "type[BaseException]":
        """Make, once, the class that stands for an exception class of the answer's."""
        if bases[0] in _EXCEPTIONS:
            return _EXCEPTIONS[bases[0]]
        if number not in self.kinds:
            base = next((_EXCEPTIONS[name] for name in bases if name in _EXCEPTIONS), Exception)
            body = {"_answer_class": number, "__getattr__": _attribute_of_error}
            self.kinds[number] = type(str(bases[0]), (base,), body)
        return self.kinds[number]


def _attribute_of_error(error: Any, name: str) -> Any:
    if name == "_stand_in" or name.startswith("__"):
        raise AttributeError(name)
    return getattr(error._stand_in, name)


def replace(ours: Any, theirs: Any) -> None:
    """Do to our container what the answer did to its copy."""
    if isinstance(ours, list) and isinstance(theirs, list):
        ours[:] = theirs
    elif isinstance(ours, (dict, set)) and type(ours) is type(theirs):
        ours.clear()
        ours.update(theirs)


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
        content = _content(self)
        return StandIn if content is None else type(content)

    def __getattr__(self, name: str) -> Any:
        content = _content(self)
        if content is not None and hasattr(content, name):
            return getattr(content, name)
        value = _ask(self, "getattr", name)
        if isinstance(value, StandIn):
            remote, own, number = _remote(self), _number_of(self), _number_of(value)
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
        remote = _remote(self)
        value = remote.ask("call", self, *arguments, **named)
        if isinstance(value, StandIn) and _number_of(self) in remote.makers:
            remote.made.add(_number_of(value))
        return value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StandIn):
            return _truth(_ask(self, "eq", other))
        content = _content(self)
        return content is not None and bool(content == other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        content = _content(self)
        return hash(_number_of(self) if content is None else content)

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
        content = _content(self)
        return _ask(self, "iter") if content is None else iter(content)

    def __next__(self) -> Any:
        return _ask(self, "next")

    def __contains__(self, item: object) -> bool:
        if _content(self) is None and _number_of(self) in _remote(self).made:
            return _truth(_ask(self, "contains", item))
        return any(one is item or one == item for one in self)

    def __enter__(self) -> Any:
        return _ask(self, "enter")

    def __exit__(self, *_: object) -> None:
        _ask(self, "exit")

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, StandIn) and _truth(_remote(value).ask("isinstance", value, self))


def _remote(stand_in: StandIn) -> Remote:
    return object.__getattribute__(stand_in, "_remote")


def _content(stand_in: StandIn) -> Any:
    return object.__getattribute__(stand_in, "_content")


def _number_of(stand_in: StandIn) -> int:
    return object.__getattribute__(stand_in, "_handle")["id"]


def _kind(stand_in: StandIn) -> str:
    return object.__getattribute__(stand_in, "_handle")["kind"]


def _ask(stand_in: StandIn, operation: str, *arguments: Any) -> Any:
    return _remote(stand_in).ask(operation, stand_in, *arguments)


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
        content = _content(self)
        if content is not None:
            return compute(other, content) if swapped else compute(content, other)
        apart = not isinstance(other, StandIn)
        if apart and ordering:
            raise TypeError("an object of the answer's own is not ordered against plain data")
        value = _remote(self).ask(operation, other, self) if swapped else _ask(self, operation, other)
        if not isinstance(value, StandIn):
            if apart:
                raise TypeError("an object of the answer's own does not compute plain data from plain data")
        elif _number_of(self) in _remote(self).made:
            _remote(self).made.add(_number_of(value))
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
    """Stands for the answer's module: `from solution import name`."""

    def __init__(self, name: str, remote: Remote, names: "list[str]") -> None:
        super().__init__(name)
        self.__dict__["_remote"] = remote
        self.__all__ = [name for name in names if not name.startswith("_")]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__["_remote"].name(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            raise TypeError("the answer's module cannot be changed from a test")
