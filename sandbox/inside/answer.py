"""The answer's process, when tests must run inside the jail: it loads the answer and does what it is asked.

Nothing it says is believed further than as the value of one call. See `link.py`.
"""

# ruff: noqa: PTH103, PTH120, PTH123 - every jail would load pathlib for a handful of calls

import builtins
import io
import json
import os
import sys
from collections import deque
from importlib import import_module
from typing import Any

from . import borrowed, programs, protocol
from .borrowed import Borrowed
from .link import Closed, Codec, Json, Link
from .mirrored import Mirrored
from .operations import OPERATIONS

_AWAITED = {
    "await": lambda coroutine: coroutine,
    "anext": anext,
    "aenter": lambda manager: type(manager).__aenter__(manager),
    "aexit": lambda manager: type(manager).__aexit__(manager, None, None, None),
}
_KINDS = ("function", "method", "generator", "coroutine")
_ABOUT = frozenset(("copy", "dataclasses", "inspect", "typing", "asyncio", "pickle"))
"""Modules whose functions a test may have applied here, to an object that is here (`introspection.py`)."""
_MUTABLE = (list, dict, set)
_MAX_KNOWN = 10_000
_MAX_CAUSES = 3


class Answer:
    """Serves one tester until it hangs up."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.objects: dict[int, Any] = {}
        self.borrowed: dict[int, Any] = {}
        self.codec = Codec(self.handle, self.from_handle)
        self.mirrored = Mirrored(self.handle)
        self.module: Any = None
        self.loop: Any = None

    def handle(self, value: Any) -> Any:
        """Keep an object here, and say what it is."""
        if isinstance(value, Borrowed):
            return {"lent": borrowed.number_of(value)}
        if isinstance(value, type) and "_lent_class" in vars(value):
            return {"lent": vars(value)["_lent_class"]}
        if isinstance(value, type) and not issubclass(value, BaseException) and _is_builtin(value):
            return {"kind": "builtin", "type": value.__name__}
        self.objects[id(value)] = value
        kind = type(value).__name__ if type(value).__name__ in _KINDS else "object"
        if isinstance(value, type):
            kind = "exception" if issubclass(value, BaseException) else "class"
        about: Json = {"id": id(value), "kind": kind, "type": type(value).__name__}
        if kind == "exception":
            about["type"], about["bases"] = value.__name__, [base.__name__ for base in value.__mro__]
            about["module"] = value.__module__
        elif isinstance(value, type(sys)):
            about["kind"], about["module"] = "module", value.__name__
        return about

    def from_handle(self, body: Any) -> Any:
        """Find an object that the tester sends back, or Python's own, or stand in for one that it lends."""
        about, _ = body
        if "global" in about:
            module, name = about["global"]
            return getattr(import_module(module), name)
        if "module" in about:
            return self.module
        if "lent" not in about:
            return self.objects[about["id"]]
        number = about["lent"]
        if number not in self.borrowed:
            bases = about.get("bases")
            made = borrowed.exception_class(number, "Lent", bases) if bases else Borrowed(number, self.call_back)
            for name, told in zip(("__name__", "__qualname__", "__doc__"), about.get("name", ()), strict=False):
                object.__setattr__(made, name, told)
            self.borrowed[number] = made
        return self.borrowed[number]

    def call_back(self, number: int, operation: str, arguments: "tuple[Any, ...]", named: "dict[str, Any]") -> Any:
        """Have something done to an object of the tester's, while it waits for us; it may ask for more meanwhile."""
        packed = {name: self.codec.pack(value) for name, value in named.items()}
        message = {"callback": number, "operation": operation, "arguments": self.codec.pack(list(arguments))}
        self.link.send({**message, "named": packed})
        while "operation" in (reply := self.link.receive()):
            self.link.send(self.served(reply))
        if "raised" in reply:
            raise self.raised_there(reply)
        return self.codec.unpack(reply["value"])

    def raised_there(self, reply: Json) -> BaseException:
        """Make the exception that an object of the tester's raised."""
        kind = self.borrowed.get(reply.get("lent", -1)) or getattr(builtins, reply["raised"], RuntimeError)
        return kind(reply["message"]) if reply["message"] else kind()

    def serve(self) -> None:
        """Answer requests until the tester is gone."""
        while True:
            try:
                request = self.link.receive()
            except Closed:
                return
            self.link.send(self.served(request))

    def served(self, request: Json) -> Json:
        """Do one thing, as the tester's process is."""
        reply: Json = {}
        try:
            with self.mirrored.like(request.get("told", {}), self.codec.unpack, reply):
                self.perform(request, reply)
        except BaseException as error:  # noqa: BLE001 - a result, whatever it is
            reply["raised"] = self.raised(error)
        return reply

    def perform(self, request: Json, reply: Json) -> None:
        """Do one thing, and put what came of it into the reply."""
        arguments = self.codec.unpack(request["arguments"])
        if request["operation"] == "name":
            reply["value"] = self.codec.pack(getattr(self.module, arguments[0]))
            return
        before = [self.codec.pack(argument) if type(argument) in _MUTABLE else None for argument in arguments]
        named = {name: self.codec.unpack(value) for name, value in request.get("named", {}).items()}
        places = known(arguments)
        streams = sys.stdout, sys.stderr
        printed, complained = (io.StringIO() if wanted else None for wanted in request.get("capture", (False, False)))
        sys.stdout, sys.stderr = printed or sys.stdout, complained or sys.stderr
        try:
            value = self.operate(request["operation"], arguments, named)
        finally:
            sys.stdout, sys.stderr = streams
            if printed is not None:
                reply["printed"] = printed.getvalue()
            if complained is not None:
                reply["complained"] = complained.getvalue()
            changed = {
                str(index): after
                for index, old in enumerate(before)
                if old is not None and (after := self.codec.pack(arguments[index])) != old
            }
            if changed:
                reply["changed"] = changed
        place = places.get(id(value))
        if place is not None and within(arguments, place) is value:
            reply["same"] = place
        reply["value"] = self.codec.pack(value)

    def operate(self, operation: str, arguments: "list[Any]", named: "dict[str, Any]") -> Any:
        """Do one thing."""
        if operation in _AWAITED:
            import asyncio

            self.loop = self.loop or asyncio.Runner()
            made = _AWAITED[operation](*arguments)

            async def wait() -> Any:
                return await made

            return self.loop.run(wait())
        if operation == "aiter":
            return aiter(*arguments)
        if operation == "derive":
            base, name, body = arguments
            return type(base)(name, (base,), {key: _method(value) for key, value in body.items()})
        module, _, function = operation.partition(".")
        if module in _ABOUT:
            return getattr(import_module(module), function)(*arguments, **named)
        return OPERATIONS[operation](*arguments, **named)

    def raised(self, error: BaseException, depth: int = 0) -> Json:
        """Say what was raised, by its real type."""
        kind = type(error)
        plain = [argument if type(argument) in (str, int, float, bool) else str(argument) for argument in error.args]
        state: Json = {}
        for name, value in getattr(error, "__dict__", {}).items():
            if type(value) in (str, int, float, bool, type(None)):
                state[name] = self.codec.pack(value)
        cause = error.__cause__
        return {
            "bases": [base.__name__ for base in kind.__mro__],
            "module": kind.__module__,
            "lent": vars(kind).get("_lent_class"),
            "state": state,
            "cause": self.raised(cause, depth + 1) if cause is not None and depth < _MAX_CAUSES else None,
            "class": id(kind),
            "arguments": [value[:2000] if isinstance(value, str) else value for value in plain[:10]],
            "described": programs.described(error),
            "object": self.handle(error),
        }


def _is_builtin(value: type) -> bool:
    return vars(builtins).get(value.__name__) is value


def _method(value: Any) -> Any:
    """A function of the test's, as a method."""
    if not isinstance(value, Borrowed):
        return value
    return lambda *arguments, **named: value(*arguments, **named)


def known(arguments: "list[Any]") -> "dict[int, list[Any]]":
    """Where each object that the test handed over stands in the arguments, by its id."""
    places: dict[int, list[Any]] = {}
    waiting: list[tuple[Any, list[Any]]] = [(value, [index]) for index, value in enumerate(arguments)]
    while waiting and len(places) < _MAX_KNOWN:
        value, path = waiting.pop()
        if type(value) in (list, dict, set, tuple, bytearray, deque) and id(value) not in places:
            places[id(value)] = path
            if type(value) in (list, tuple):
                waiting += [(one, [*path, index]) for index, one in enumerate(value)]
            elif type(value) is dict:
                waiting += [(one, [*path, key]) for key, one in value.items() if type(key) in (str, int)]
    return places


def within(value: Any, path: "list[Any]") -> Any:
    """Follow a path; None where it leads nowhere any more."""
    try:
        for step in path:
            value = value[step]
    except (LookupError, TypeError):
        return None
    return value


def write_support(files: bytes) -> None:
    """Put the task's files that are no tests beside the answer, which is already there."""
    for name, text in json.loads(files).items():
        path = f"{protocol.WORK}/{name}"
        if path != protocol.SOLUTION:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


def run_answer(descriptors: "list[int]", process: Json) -> None:
    """Compile, report that, load, report that, serve."""
    source = programs.read_all(descriptors[0])
    link = Link(descriptors[1])
    try:
        code = programs.compile_source(source)
    except programs.REFUSED as error:
        link.send({"syntax": programs.syntax_message(error)})
        programs.leave()
    link.send({"compiled": True})
    programs.be_script(source)
    answer = Answer(link)
    answer.mirrored.install(logs=process["logs"])
    os.umask(0)  # the test takes away what stands in its folders
    try:
        if len(descriptors) > 2:
            write_support(programs.read_all(descriptors[2]))
        module = programs.load(code, process, process["entry_point"] or "solution")
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        link.send({"raised": answer.raised(error)})
        programs.leave()
    names = [name for name in module.__dict__ if not name.startswith("__")]
    answer.module = module
    link.send({"loaded": names})
    answer.serve()
    programs.leave()
