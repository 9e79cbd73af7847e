"""What a forked interpreter runs: the answer as a program, or one call of its function.

Runs in the jail after every privilege is gone. What it writes to its result pipe are claims, which the
host checks: lines of `nonce JSON`. The first, `compiled` or `syntax`, is written before any judged code
has run. A claim of a value is no more than a value: the expected one is not here.
"""

# ruff: noqa: PTH123 - every jail would load pathlib for a handful of calls

import atexit
import io
import json
import os
import sys
import threading
import tokenize
import traceback
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from . import values
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


def write_source(source: bytes) -> None:
    """Put the answer where `__file__`, `inspect` and tracebacks look for it."""
    with open(SOLUTION, "wb") as file:
        file.write(source)
    sys.path.insert(0, WORK)


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
    write_source(source)
    module = ModuleType("__main__")
    module.__dict__.update(__file__=SOLUTION, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    sys.argv[:] = ["solution.py", *process["argv"]]
    add_site_builtins()
    del source, claims, process, descriptors
    status = 0
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        status = exit_status(error.code)
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        trace = own_frames_removed(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        status = 1
    finish(module, status)


def exit_status(code: object) -> int:
    """Do what Python does with the argument of `sys.exit`."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    print(code, file=sys.stderr)
    return 1


def finish(module: ModuleType, status: int) -> NoReturn:
    """End as the interpreter does, in its order: threads, exit functions, globals, buffers.

    Not by its own end: taking down every module costs more than all the rest of a small program.
    """
    # what the interpreter itself calls at its end; there is no public name for either
    getattr(threading, "_shutdown")()  # noqa: B009
    getattr(atexit, "_run_exitfuncs")()  # noqa: B009
    module.__dict__.clear()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError:
            status = status or 120
    os._exit(status)


def own_frames_removed(trace: "TracebackType | None") -> "TracebackType | None":
    """Leave the frames of the answer only."""
    while trace is not None and trace.tb_frame.f_code.co_filename != SOLUTION:
        trace = trace.tb_next
    return trace


def load(code: CodeType, name: str = "solution") -> ModuleType:
    """Import the answer as a module."""
    module = ModuleType(name)
    module.__file__ = SOLUTION
    sys.modules[name] = module
    exec(code, module.__dict__)
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


def run_call(descriptors: "list[int]", process: Json) -> None:
    """Call one function of the answer with the arguments of one test."""
    source, payload = read_all(descriptors[0]), read_all(descriptors[1])
    claims = ResultPipe(descriptors[2], process["nonce"])
    code = compiled(source, claims)
    write_source(source)
    sys.argv[:] = ["solution.py"]
    add_site_builtins()
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    arguments = json.loads(payload)
    sys.set_int_max_str_digits(digits)
    encoder = values.Encoder(process["result_bytes"])
    try:
        function: Any = load(code)
        for part in process["entry_point"].split("."):
            function = getattr(function, part)
        value = function(*arguments)
        sys.setrecursionlimit(10_000)
        claims.write("value", encoder.encode(value))
    except values.NotPlain as error:
        claims.text("unprintable", str(error))
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        sys.setrecursionlimit(10_000)
        claims.text("raised", described(error))
    leave()
