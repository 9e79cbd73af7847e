"""In the tester: what stands for the answer and its objects. See `link.py`."""

import builtins
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from link import Codec, Json, Link


class AnswerEnded(Exception):
    """The answer's process ended, or broke the protocol, while a test waited for it."""


_NOT_AN_ERROR = ("SystemExit", "KeyboardInterrupt", "GeneratorExit")
_EXCEPTIONS = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
}


class Remote:
    """The answer's process, as the tester sees it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.codec = Codec(self.lend, self.from_handle)
        self.lent: list[Any] = []
        self.kinds: dict[int, type] = {}
        self.last_error = ""

    def lend(self, value: Any) -> Any:
        """Hand out an object: one of the answer's own goes back as itself; a function may be called back."""
        if isinstance(value, StandIn):
            return {"id": object.__getattribute__(value, "_handle")["id"]}
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
        self.link.send(
            {
                "operation": operation,
                "arguments": self.codec.pack(list(arguments)),
                "named": {name: self.codec.pack(value) for name, value in named.items()},
                "capture": capture,
            }
        )
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
            except Exception as error:
                raise AnswerEnded("the answer's process ended before it answered") from error
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

    def error(self, about: Json) -> Exception:
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

    def exception_class(self, number: int, bases: "list[str]") -> "type[Exception]":
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
    """An object that stays with the answer. Whatever is done to it is done there.

    Equality with plain data is decided here, by the object's real content, and never by its own methods;
    two objects of the answer's are compared there.
    """

    def __init__(self, remote: Remote, handle: Json, content: Any) -> None:
        object.__setattr__(self, "_remote", remote)
        object.__setattr__(self, "_handle", handle)
        object.__setattr__(self, "_content", content)

    def __getattr__(self, name: str) -> Any:
        return _ask(self, "getattr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "setattr", name, value)

    def __delattr__(self, name: str) -> None:
        _ask(self, "delattr", name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return object.__getattribute__(self, "_remote").ask("call", self, *arguments, **named)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StandIn):
            return _truth(_ask(self, "eq", other))
        return object.__getattribute__(self, "_content") is not None and bool(
            object.__getattribute__(self, "_content") == other
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        content = object.__getattribute__(self, "_content")
        return hash(object.__getattribute__(self, "_handle")["id"] if content is None else content)

    def __bool__(self) -> bool:
        return _truth(_ask(self, "bool"))

    def __len__(self) -> int:
        return _number(_ask(self, "len"), int)

    def __int__(self) -> int:
        return _number(_ask(self, "int"), int)

    def __float__(self) -> float:
        return _number(_ask(self, "float"), float)

    def __index__(self) -> int:
        return _number(_ask(self, "index"), int)

    def __repr__(self) -> str:
        return str(_ask(self, "repr"))

    def __str__(self) -> str:
        return str(_ask(self, "str"))

    def __format__(self, specification: str) -> str:
        return str(_ask(self, "format", specification))

    def __iter__(self) -> "Iterator[Any]":
        return _ask(self, "iter")

    def __next__(self) -> Any:
        return _ask(self, "next")

    def __contains__(self, item: object) -> bool:
        return _truth(_ask(self, "contains", item))

    def __enter__(self) -> Any:
        return _ask(self, "enter")

    def __exit__(self, *_: object) -> None:
        _ask(self, "exit")

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, StandIn) and _truth(
            object.__getattribute__(value, "_remote").ask("isinstance", value, self)
        )


def _ask(stand_in: StandIn, operation: str, *arguments: Any) -> Any:
    return object.__getattribute__(stand_in, "_remote").ask(operation, stand_in, *arguments)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("the answer gave something that is neither True nor False")
    return value


def _number(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"the answer gave something that is no {kind.__name__}")
    return value


def _forward(name: str, operation: str, *, swapped: bool = False) -> None:
    def ours(self: Any, *arguments: Any) -> Any:
        remote = object.__getattribute__(self, "_remote")
        return remote.ask(operation, *arguments, self) if swapped else remote.ask(operation, self, *arguments)

    setattr(StandIn, name, ours)


for _name in [
    "getitem",
    "setitem",
    "delitem",
    "lt",
    "le",
    "gt",
    "ge",
    "neg",
    "pos",
    "invert",
    "reversed",
    "round",
    "abs",
]:
    _forward(f"__{_name}__", _name)
for _name in [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
]:
    _operation = f"{_name}_" if _name in ("and", "or") else _name
    _forward(f"__{_name}__", _operation)
    _forward(f"__r{_name}__", _operation, swapped=True)


class AnswerModule(ModuleType):
    """Stands for the answer's module: `from solution import name`."""

    def __init__(self, name: str, remote: Remote, names: "list[str]") -> None:
        super().__init__(name)
        self.__dict__["_remote"] = remote
        self.__all__ = [name for name in names if not name.startswith("_")]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__["_remote"].ask("name", name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            raise TypeError("the answer's module cannot be changed from a test")
