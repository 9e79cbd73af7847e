"""How a forked interpreter begins and ends: as CPython's own does, but for loading and taking down what we loaded.

The beginning: streams on its own descriptors; those that it was forked with remember another's (whether one can seek).

The end (`Py_FinalizeEx`): threads that are no daemons, exit functions, a flush of the streams as they are now; then
the original streams come back, so that what stood in their place goes, and the program's globals with it, and what they
still hold is written. What a flush raises is told as CPython tells it, and makes the exit status 120.
"""

import atexit
import contextlib
import ctypes
import gc
import io
import os
import signal
import sys
import threading
from functools import cache
from typing import Any, NoReturn

_FLUSH_FAILED = 120
STACK_BYTES_A_LEVEL = 512
"""Of C code that calls Python code that calls it; a little more than was seen."""


def begin() -> None:
    """Open standard input, output and error anew, as the interpreter does at its start."""
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        old = getattr(sys, f"__{name}__")
        if old is None:
            continue
        buffer: Any = open(descriptor, "rb" if descriptor == 0 else "wb", closefd=False)  # noqa: SIM115
        buffer.raw.name = f"<{name}>"
        newline = None if descriptor == 0 else "\n"
        stream = io.TextIOWrapper(buffer, old.encoding, old.errors, newline, line_buffering=descriptor == 2)
        vars(stream)["mode"] = "r" if descriptor == 0 else "w"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def deepen(levels: int) -> None:
    """Let C code call itself as often as the stack bears: from 3.12 on Python has a limit of its own, and no setter.

    A function under `lru_cache` that calls itself ended there at a few hundred levels.
    """
    offset = _c_recursion_offset()
    if offset:
        left = ctypes.c_int.from_address(_thread_state() + offset)
        left.value = max(left.value, levels)


def _thread_state() -> int:
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    return get()


@cache
def _c_recursion_offset() -> int:
    """Where a thread's state has what is left of that limit: behind Python's own, which can be seen to move; or 0."""
    if not (3, 12) <= sys.version_info < (3, 14):
        return 0
    state, limit, found = _thread_state(), sys.getrecursionlimit(), list[int]()
    sys.setrecursionlimit(limit + 4321)
    for offset in range(24, 64, 4):
        if ctypes.c_int.from_address(state + offset).value == limit + 4321:
            found.append(offset + 4)
    sys.setrecursionlimit(limit)
    return found[0] if len(found) == 1 else 0


def ended() -> None:
    """Do what the interpreter does after a script's last line, however it came there."""
    for name in ("stderr", "stdout"):
        with contextlib.suppress(BaseException):
            getattr(sys, name).flush()


def status_of(error: BaseException) -> int:
    """Say what ended the program, and return the status that it ends with; a negative one: by that signal."""
    if isinstance(error, SystemExit):
        return exit_status(error.code)
    trace = error.__traceback__
    try:
        sys.excepthook(type(error), error, trace)
    except SystemExit as other:
        return exit_status(other.code)
    except BaseException as other:  # noqa: BLE001 - the program's own hook
        other.__context__ = None
        print("Error in sys.excepthook:", file=sys.stderr)
        rest = other.__traceback__ and other.__traceback__.tb_next
        sys.__excepthook__(type(other), other.with_traceback(rest), rest)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, trace)
    return -signal.SIGINT if type(error) is KeyboardInterrupt else 1


def exit_status(code: object) -> int:
    """Do what Python does with the argument of `sys.exit`."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    print(code, file=sys.stderr)
    return 1


def end(status: int) -> NoReturn:
    """End. Nobody may hold the program's module any more but `sys.modules`.

    Not by the interpreter's own end: taking down every module costs more than all the rest of a small program.
    """
    # what the interpreter itself calls at its end; there is no public name for either
    getattr(threading, "_shutdown")()  # noqa: B009
    getattr(atexit, "_run_exitfuncs")()  # noqa: B009
    flushed = flush()
    if gc.isenabled():
        gc.collect()
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    sys.modules.pop("__main__", None)
    gc.collect()
    ended()
    if status < 0 and flushed:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if flushed else _FLUSH_FAILED)


def flush() -> bool:
    """Flush standard output and standard error, as they are now; whether that went well."""
    fine = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is None or _closed(stream):
            continue
        try:
            stream.flush()
        except BaseException as error:  # noqa: BLE001 - told, as CPython does
            fine = False
            if name == "stdout":
                trace = error.__traceback__ and error.__traceback__.tb_next
                tell(error.with_traceback(trace), stream)
    return fine


def tell(error: BaseException, where: object) -> None:
    """Have an error told that nobody can catch."""
    kinds: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda told: kinds.append(type(told))
    _Raises()  # Python has no name for the type of what such a hook is told
    sys.unraisablehook = hook
    hook(kinds[0]((type(error), error, error.__traceback__, None, where)))


class _Raises:
    def __del__(self) -> None:
        raise ValueError


def _closed(stream: object) -> bool:
    try:
        return bool(getattr(stream, "closed"))  # noqa: B009 - no attribute of `object`
    except BaseException:  # noqa: BLE001 - then it is not
        return False
