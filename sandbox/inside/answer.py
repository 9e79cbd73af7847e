"""The answer's process, when tests must run inside the jail: it loads the answer and does what it is asked.

Nothing it says is believed further than as the value of one call. See `link.py`.
"""

# ruff: noqa: PTH103, PTH120, PTH123 - every jail would load pathlib for a handful of calls

import io
import json
import operator
import os
import sys
from collections.abc import Callable
from typing import Any

from . import programs, protocol
from .link import Closed, Codec, Json, Link

_OPERATIONS: "dict[str, Callable[..., Any]]" = {
    "call": lambda function, *arguments, **named: function(*arguments, **named),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "len": len,
    "iter": iter,
    "next": next,
    "repr": repr,
    "str": str,
    "format": format,
    "bool": bool,
    "int": int,
    "float": float,
    "index": operator.index,
    "reversed": reversed,
    "round": round,
    "abs": abs,
    "isinstance": isinstance,
    "issubclass": issubclass,
    "enter": lambda manager: type(manager).__enter__(manager),
    "exit": lambda manager: type(manager).__exit__(manager, None, None, None),
    **{
        name: getattr(operator, name)
        for name in [
            "getitem",
            "setitem",
            "delitem",
            "contains",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "neg",
            "pos",
            "invert",
            "add",
            "sub",
            "mul",
            "truediv",
            "floordiv",
            "mod",
            "pow",
            "matmul",
            "and_",
            "or_",
            "xor",
            "lshift",
            "rshift",
            "iadd",
            "isub",
            "imul",
            "iand",
            "ior",
            "ixor",
        ]
    },
}


class Answer:
    """Serves one tester until it hangs up."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.objects: dict[int, Any] = {}
        self.codec = Codec(self.handle, self.from_handle)

    def handle(self, value: Any) -> Any:
        """Keep an object here, and say what it is."""
        self.objects[id(value)] = value
        kind = "object"
        if isinstance(value, type):
            kind = "exception" if issubclass(value, BaseException) else "class"
        about: Json = {"id": id(value), "kind": kind, "type": type(value).__name__}
        if kind == "exception":
            about["type"], about["bases"] = value.__name__, [base.__name__ for base in value.__mro__]
        elif isinstance(value, type(sys)):
            about["module"] = value.__name__
        return about

    def from_handle(self, body: Any) -> Any:
        """Find an object that the tester sends back, or stand in for a function that it lends."""
        about, _ = body
        if "lent" in about:
            return lambda *arguments: self.call_back(about["lent"], arguments)
        return self.objects[about["id"]]

    def call_back(self, number: int, arguments: "tuple[Any, ...]") -> Any:
        """Call a function of the tester's, while it waits for us."""
        self.link.send({"callback": number, "arguments": self.codec.pack(list(arguments))})
        reply = self.link.receive()
        if "raised" in reply:
            raise getattr(__import__("builtins"), reply["raised"], RuntimeError)(reply["message"])
        return self.codec.unpack(reply["value"])

    def serve(self, module: Any) -> None:
        """Answer requests until the tester is gone."""
        while True:
            try:
                request = self.link.receive()
            except Closed:
                return
            try:
                reply = self.perform(module, request)
            except BaseException as error:  # noqa: BLE001 - a result, whatever it is
                reply = {"raised": self.raised(error)}
            self.link.send(reply)

    def perform(self, module: Any, request: Json) -> Json:
        """Do one thing."""
        arguments = self.codec.unpack(request["arguments"])
        if request["operation"] == "name":
            return {"value": self.codec.pack(getattr(module, arguments[0]))}
        before = [self.codec.pack(argument) if type(argument) in (list, dict, set) else None for argument in arguments]
        named = {name: self.codec.unpack(value) for name, value in request.get("named", {}).items()}
        printed = io.StringIO() if request.get("capture") else None
        stdout, sys.stdout = sys.stdout, printed or sys.stdout
        try:
            value = _OPERATIONS[request["operation"]](*arguments, **named)
        finally:
            sys.stdout = stdout
        reply: Json = {"value": self.codec.pack(value)}
        changed = {
            str(index): after
            for index, old in enumerate(before)
            if old is not None and (after := self.codec.pack(arguments[index])) != old
        }
        if changed:
            reply["changed"] = changed
        if printed is not None:
            reply["printed"] = printed.getvalue()
        return reply

    def raised(self, error: BaseException) -> Json:
        """Say what was raised, by its real type."""
        kind = type(error)
        plain = [argument if type(argument) in (str, int, float, bool) else str(argument) for argument in error.args]
        return {
            "bases": [base.__name__ for base in kind.__mro__],
            "class": id(kind),
            "arguments": [value[:2000] if isinstance(value, str) else value for value in plain[:10]],
            "described": programs.described(error),
            "object": self.handle(error),
        }


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
    programs.write_source(source)
    sys.argv[:] = ["solution.py"]
    programs.add_site_builtins()
    answer = Answer(link)
    try:
        if len(descriptors) > 2:
            write_support(programs.read_all(descriptors[2]))
        module = programs.load(code, process, process["entry_point"] or "solution")
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        link.send({"raised": answer.raised(error)})
        programs.leave()
    names = [name for name in module.__dict__ if not name.startswith("__")]
    link.send({"loaded": names})
    answer.serve(module)
    programs.leave()
