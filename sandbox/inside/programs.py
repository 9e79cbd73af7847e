"""What a forked interpreter runs: the answer as a program, or one call of its function.

Runs in the jail after every privilege is gone. What it writes to its result pipe are claims, which the
host checks: lines of `nonce JSON`. The first, `compiled` or `syntax`, is written before any judged code
has run. A claim of a value is no more than a value: the expected one is not here.
"""

# ruff: noqa: PTH123 - every jail would load pathlib for a handful of calls

import io
import json
import os
import sys
import tokenize
import traceback
from collections.abc import Sequence
from importlib import import_module
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from . import interpreter, values
from .protocol import SOLUTION, WORK

Json = dict[str, Any]
MAX_MESSAGE = 2000


class ResultPipe:
    """The result pipe of one test."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        self.descriptor = descriptor
        self.nonce = nonce.encode()
        self.write_to = os.write
        self.dump = values.Encoder(1 << 20)

    def write(self, name: str, body: bytes) -> None:
        """Claim `name` with a body that is already JSON."""
        line = b"%s %s %s\n" % (self.nonce, name.encode(), body)
        while line:
            line = line[self.write_to(self.descriptor, line) :]

    def text(self, name: str, text: str) -> None:
        """Claim a message."""
        self.write(name, json.dumps(text[:MAX_MESSAGE]).encode())

    def close(self) -> None:
        """Nothing more will be said."""
        os.close(self.descriptor)


def read_all(descriptor: int) -> bytes:
    """Read a descriptor from its start to its end, and close it."""
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


REFUSED = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError)


def compile_source(source: bytes) -> CodeType:
    """Compile the answer; one of REFUSED if Python will not have it."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    source.decode(encoding)  # `compile` looks at no byte of a comment
    return compile(source, SOLUTION, "exec", dont_inherit=True)


def syntax_message(error: BaseException) -> str:
    """Say what Python had against it."""
    return "".join(traceback.format_exception_only(error)).replace(f"{WORK}/", "")


def compiled(source: bytes, claims: ResultPipe) -> CodeType:
    """Compile the answer and say so; a source that Python refuses ends the process here."""
    try:
        code = compile_source(source)
    except REFUSED as error:
        claims.text("syntax", syntax_message(error))
        os._exit(0)
    claims.write("compiled", b"null")
    return code


def be_script(source: bytes, arguments: "Sequence[str]" = ()) -> None:
    """Let the answer find what a script does: itself at `__file__`, for tracebacks too, `sys.argv`, `exit`, `help`."""
    with open(SOLUTION, "wb") as file:
        file.write(source)
    sys.path.insert(0, WORK)
    sys.argv[:] = ["solution.py", *arguments]
    add_site_builtins()


def add_site_builtins() -> None:
    """Give programs `exit`, `quit` and `help`, which the isolated start leaves out."""
    import site

    site.setquit()
    site.sethelper()


def run_main(descriptors: "list[int]", process: Json) -> None:
    """Run the answer as `__main__`; the interpreter then ends as it does for any script."""
    source = read_all(descriptors[0])
    claims = ResultPipe(descriptors[1], process["nonce"])
    code = compiled(source, claims)
    claims.close()
    be_script(source, process["argv"])
    module = ModuleType("__main__")
    module.__dict__.update(__file__=SOLUTION, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    sys.set_int_max_str_digits(process["int_digits"])
    space = module.__dict__
    del source, claims, process, descriptors, module
    try:
        exec(code, space)
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        interpreter.ended()
        status = interpreter.status_of(error.with_traceback(own_frames_removed(error.__traceback__)))
    else:
        interpreter.ended()
        status = 0
    del space, code
    interpreter.end(status)


def own_frames_removed(trace: "TracebackType | None") -> "TracebackType | None":
    """Leave the frames of the answer only."""
    while trace is not None and trace.tb_frame.f_code.co_filename != SOLUTION:
        trace = trace.tb_next
    return trace


class BrokenPrelude(Exception):
    """What the task runs before the answer cannot be run."""


def load(code: CodeType, process: Json, name: str = "solution") -> ModuleType:
    """Import the answer as a module, after what the task gives: names (`given`: name → its module) and a program."""
    module = ModuleType(name)
    module.__file__ = SOLUTION
    sys.modules[name] = module
    space = module.__dict__
    try:
        for given, source in process["given"].items():
            space[given] = getattr(import_module(source, __package__), given) if source else import_module(given)
        if process["prelude"]:
            exec(compile(process["prelude"], "<prelude>", "exec", dont_inherit=True), space)
    except Exception as error:  # noqa: BLE001 - the task's, told to the host
        raise BrokenPrelude(described(error)) from None
    exec(code, space)
    return module


def described(error: BaseException) -> str:
    """Say what was raised and where, without calling anything the answer defined."""
    kind = type.__dict__["__name__"].__get__(type(error))
    arguments = BaseException.__dict__["args"].__get__(error)
    parts = [argument for argument in arguments if type(argument) in (str, int, float, bool, type(None))]
    line = 0
    trace = own_frames_removed(BaseException.__dict__["__traceback__"].__get__(error))
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SOLUTION:
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" (line {line})" if line else ""
    return f"{kind}: {', '.join(str(part)[:500] for part in parts)}{where}"


def leave() -> NoReturn:
    """End with what was printed flushed, and nothing else the answer may have planted for the end."""
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            pass  # closed by the answer, or its reader is gone
    os._exit(0)
