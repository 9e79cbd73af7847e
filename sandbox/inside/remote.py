"""In the tester: the answer's process, asked over the link; and how its objects and errors are shown here."""

import builtins
import sys
from importlib import import_module
from types import FunctionType
from typing import Any

from . import lending
from .link import Closed, Codec, Json, Link
from .mirror import Mirror

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
_TYPES = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and not issubclass(kind, BaseException) and name[0] != "_"
}
_OF_TEST_TOOLS = ("unittest", "doctest")
_MAX_CAUSES = 3


class Remote:
    """The answer's process, as the tester sees it."""

    def __init__(self, link: Link, stand_in: Any, awaited: Any) -> None:
        self.link = link
        self.stand_in = stand_in
        self.awaited = awaited
        self.codec = Codec(self.lend, self.from_handle)
        self.mirror = Mirror()
        self.lent: list[tuple[Any, str]] = []
        self.numbers: dict[int, int] = {}
        """By id, of what is lent: one that is lent again is the same there."""
        self.test_modules = frozenset({"__test__"})
        self.kinds: dict[int, type] = {}
        self.shown: dict[int, Any] = {}
        """By its number there: an object that comes again is the same here."""
        self.last_error = ""
        self.ended = False
        """A test in which this becomes true has failed, whatever it caught."""
        self.makers: set[int] = set()
        """Classes, by a name with a capital, and their own methods: what they return, the test has made."""
        self.made: set[int] = set()

    def name(self, name: str) -> Any:
        """Fetch a global of the answer's module."""
        value = self.ask("name", name)
        if self.is_shown(value) and value._handle["kind"] == "class":
            self.learn(name, value)
        return value

    def is_shown(self, value: Any) -> bool:
        """Whether a value stands for an object of the answer's."""
        return type(value) is self.stand_in

    def learn(self, name: str, value: Any) -> None:
        """Note a class, if the test calls it by a class's name."""
        if name[:1].isupper():
            self.makers.add(value._handle["id"])

    # values

    def lend(self, value: Any) -> Any:
        """Hand out an object: one of the answer's own as itself, Python's own by its name, others on loan."""
        if self.is_shown(value):
            return {"id": object.__getattribute__(value, "_handle")["id"]}
        about = vars(value).get("_answer_class") if isinstance(value, type) else None
        if about is not None:
            return {"id": about}
        owner = getattr(value, "_answer_module", None) if isinstance(value, type(sys)) else None
        if owner is not None:
            return {"module": True}
        if named := _by_name(value):
            return {"global": named}
        if id(value) not in self.numbers:
            kind = lending.kind_of(value, self.test_modules)
            self.numbers[id(value)] = len(self.lent)
            self.lent.append((value, kind))
        number = self.numbers[id(value)]
        handle: Json = {"lent": number}
        if isinstance(value, type) and issubclass(value, BaseException):
            handle["bases"] = [base.__name__ for base in value.__mro__]
        elif isinstance(value, FunctionType):
            handle["name"] = [value.__name__, value.__qualname__, value.__doc__]
        return handle

    def from_handle(self, body: Any) -> Any:
        """Stand in for an object of the answer's, or find one of ours again."""
        about, content = body
        if "lent" in about:
            return self.lent[int(about["lent"])][0]
        if "type" in about and about["kind"] == "builtin":
            return _TYPES[about["type"]]
        if about["kind"] == "exception":
            return self.exception_class(about["id"], about["bases"], about.get("module", ""))
        if about["kind"] == "module" and about.get("module") in sys.stdlib_module_names:
            return import_module(about["module"])  # ours, not the answer's
        value = self.codec.unpack(content["c"]) if content else None
        number = int(about["id"])
        if about["kind"] == "coroutine":
            return self.awaited(self.stand_in(self, about, None))
        if number not in self.shown:
            self.shown[number] = self.stand_in(self, about, value)
        elif value is not None:
            object.__setattr__(self.shown[number], "_content", value)
        return self.shown[number]

    # asking

    def ask(self, operation: str, *arguments: Any, **named: Any) -> Any:
        """Have one thing done over there."""
        told = self.mirror.told()
        for patch in told.get("patches", ()):
            patch[2] = self.codec.pack(patch[2])
        request: Json = {
            "operation": operation,
            "arguments": self.codec.pack(list(arguments)),
            "named": {name: self.codec.pack(value) for name, value in named.items()},
            "capture": [sys.stdout is not sys.__stdout__, sys.stderr is not sys.__stderr__],
        }
        if told:
            request["told"] = told
        try:
            self.link.send(request)
        except Closed:
            self.ended = True
            raise AnswerEnded("the answer's process ended before it was asked") from None
        reply = self.reply()
        self.mirror.heard(reply, self.category)
        for stream, name in ((sys.stdout, "printed"), (sys.stderr, "complained")):
            if isinstance(reply.get(name), str):
                stream.write(reply[name])
        for index, part in reply.get("changed", {}).items():
            replace(arguments[int(index)], self.codec.unpack(part))
        if "raised" in reply:
            raise self.error(reply["raised"])
        same = reply.get("same")
        return self.codec.unpack(reply["value"]) if same is None else within(list(arguments), same)

    def reply(self) -> Json:
        """Wait for the reply, doing meanwhile what the answer wants of what we lent it."""
        while True:
            try:
                message = self.link.receive()
                if "callback" in message:
                    self.link.send(self.called_back(message))
                    continue
            except Exception:  # noqa: BLE001 - whatever the answer did to the link
                self.ended = True
                raise AnswerEnded("the answer's process ended before it answered") from None
            return message

    def called_back(self, message: Json) -> Json:
        """Do something to an object that we lent."""
        value, kind = self.lent[message["callback"]]
        try:
            named = {str(name): self.codec.unpack(part) for name, part in message.get("named", {}).items()}
            arguments = self.codec.unpack(message["arguments"])
            result = lending.perform(value, kind, message["operation"], arguments, named)
            return {"value": self.codec.pack(result)}
        except Exception as error:  # noqa: BLE001 - handed to the answer, whose call it was
            return {"raised": type(error).__name__, "lent": self.numbers.get(id(type(error))), "message": str(error)}

    # errors

    def error(self, about: Json, depth: int = 0) -> BaseException:
        """Make the exception that the answer raised, of Python's own type or of a class that stands for its own."""
        self.last_error = str(about["described"])
        bases = about["bases"]
        if any(name in _NOT_AN_ERROR for name in bases):
            return AnswerEnded(f"the answer left with {bases[0]}")
        arguments = about["arguments"]
        if isinstance(about.get("lent"), int):
            kind: Any = self.lent[about["lent"]][0]
        else:
            kind = self.exception_class(about["class"], bases, about.get("module", ""))
        try:
            error: BaseException = kind(*arguments)
        except Exception:  # noqa: BLE001 - whatever it wants for arguments
            error = kind.__new__(kind, *arguments)
        if kind in self.kinds.values():
            error.__dict__["_stand_in"] = self.stand_in(self, about["object"], None)
        elif isinstance(about.get("state"), dict):
            error.__dict__.update({str(name): self.codec.unpack(part) for name, part in about["state"].items()})
        if about.get("cause") and depth < _MAX_CAUSES:
            error.__cause__ = self.error(about["cause"], depth + 1)
        return error

    def category(self, about: Json) -> "type[BaseException]":
        """Find the class of a warning that the answer gave."""
        return self.exception_class(about["id"], about["bases"], about.get("module", ""))

    def exception_class(self, number: int, bases: "list[str]", module: str) -> "type[BaseException]":
        """Find Python's own exception class, or make, once, the one that stands for a class of the answer's."""
        if bases[0] in _EXCEPTIONS and module == "builtins":
            return _EXCEPTIONS[bases[0]]
        if module and module.partition(".")[0] in sys.stdlib_module_names:
            # one that is not loaded here is none that a test can speak of
            found = None if module.startswith(_OF_TEST_TOOLS) else getattr(sys.modules.get(module), bases[0], None)
            if isinstance(found, type) and issubclass(found, Exception):
                return found
        if number not in self.kinds:
            base = next((_EXCEPTIONS[name] for name in bases if name in _EXCEPTIONS), Exception)
            body = {"_answer_class": number, "__getattr__": _attribute_of_error}
            self.kinds[number] = type(str(bases[0]), (base,), body)
        return self.kinds[number]


def _attribute_of_error(error: Any, name: str) -> Any:
    if name == "_stand_in" or name.startswith("__"):
        raise AttributeError(name)
    return getattr(error._stand_in, name)


def _by_name(value: Any) -> "list[str] | None":
    """The module and name of a class or function of Python's own, which the answer has as well."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "." in name:
        return None
    if module.partition(".")[0] not in sys.stdlib_module_names or module.startswith(_OF_TEST_TOOLS):
        return None
    return [module, name] if vars(sys.modules.get(module, sys)).get(name) is value else None


def within(value: Any, path: "list[Any]") -> Any:
    """Follow a path of indices and keys."""
    for step in path:
        value = value[step]
    return value


def replace(ours: Any, theirs: Any) -> None:
    """Do to our container what the answer did to its copy; what is the same in it stays the same object."""
    if isinstance(ours, list) and isinstance(theirs, list):
        ours[:] = theirs
    elif isinstance(ours, (dict, set)) and type(ours) is type(theirs):
        ours.clear()
        ours.update(theirs)
