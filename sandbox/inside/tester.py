"""The tester's process: runs the task's own test code against stand-ins for the answer. See `link.py`.

It holds the run's nonce and its result pipe, has a user of its own, and runs no code of the answer's.
"""

import builtins
import json
import os
import sys
import traceback
from importlib import import_module
from types import ModuleType
from typing import Any

from . import introspection, programs, protocol, shared_files
from .link import Closed, Json, Link
from .remote import AnswerEnded, Remote
from .stand_ins import AnswerModule, StandIn, awaited

TEST_FILE = f"{protocol.WORK}/test.py"


class Namespace(dict[str, Any]):
    """The globals of test code: a name that neither it nor Python defines is the answer's."""

    def __init__(self, remote: Remote, names: "list[str]") -> None:
        super().__init__(__name__="__test__", __builtins__=builtins, __file__=TEST_FILE)
        self.remote = remote
        self.names = frozenset(names) - frozenset(vars(builtins))

    def __missing__(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(name)
        value = self.remote.name(name)
        self[name] = value
        return value


def await_answer(link: Link, claims: programs.ResultPipe) -> "list[str]":
    """Pass on whether the answer compiles, and wait until it is loaded: the names it defines."""
    try:
        first = link.receive()
        if "syntax" in first:
            claims.text("syntax", str(first["syntax"]))
            programs.leave()
        claims.write("compiled", b"null")
        second = link.receive()
    except (Closed, ValueError):
        claims.text("raised", "the answer's process ended while it was loaded")
        programs.leave()
    if "raised" in second:
        claims.text("raised", str(second["raised"]["described"]))
        programs.leave()
    return [str(name) for name in second["loaded"]]


def common_ground(remote: Remote, source: str) -> None:
    """Let the tests and the answer have in common what one process has, as far as two can; before tests are loaded."""
    if "mock" in source:
        import_module("unittest.mock")
    introspection.install()
    shared_files.install()
    remote.mirror.install()
    remote.mirror.folder = os.getcwd()  # noqa: PTH109


def run_check(descriptors: "list[int]", process: Json) -> None:
    """Run a test program, call its check function if it has one, and claim how that went: one test."""
    program = programs.read_all(descriptors[0])
    remote = Remote(Link(descriptors[1]), StandIn, awaited)
    claims = programs.ResultPipe(descriptors[2], process["nonce"])
    names = await_answer(remote.link, claims)
    entry_point, check_function = json.loads(process["entry_point"])
    common_ground(remote, program.decode("utf-8", "replace"))
    namespace = Namespace(remote, names)
    sys.modules["solution"] = AnswerModule("solution", remote, names)
    sys.modules["__test__"] = ModuleType("__test__")
    try:
        code = compile(program, TEST_FILE, "exec", dont_inherit=True)
    except SyntaxError as error:
        claims.text("broken", "".join(traceback.format_exception_only(error)))
        programs.leave()
    try:
        exec(code, namespace)
        check = dict.get(namespace, check_function)
        if check is not None:
            check(remote.name(entry_point))
    except AnswerEnded as error:
        claims.text("raised", str(error))
    except AssertionError as error:
        claims.text("failed", failure(error, program))
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        claims.text("raised", remote.last_error or programs.described(error))
    else:
        if remote.ended:
            claims.text("raised", "the answer's process ended")
        else:
            claims.write("passed", b"null")
    programs.leave()


def failure(error: BaseException, program: bytes) -> str:
    """Show the assertion that failed."""
    lines = program.decode("utf-8", "replace").splitlines()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == TEST_FILE]
    where = ""
    if frames and frames[-1].lineno and frames[-1].lineno <= len(lines):
        where = lines[frames[-1].lineno - 1].strip()
    text = str(error)
    return f"{where}\n{text}" if text else where or "assertion failed"
