"""The fork of the init that becomes a judged process."""

# ruff: noqa: PTH103, PTH120, PTH123 - every jail would load pathlib for a handful of calls

import gc
import os
import signal
from collections.abc import Callable
from typing import Any

from . import kernel
from .protocol import EXEC, JUDGED_UID, WORK

OPEN_FILES = 1024

Json = dict[str, Any]
Judged = Callable[[], None]


def in_child(confinement: kernel.Confinement, process: Json, descriptors: "dict[str, int]") -> Judged:
    """Turn this fork into the judged process; what fails here is a fault of ours, and told as such."""
    failure = descriptors["failure"]
    try:
        os.setsid()
        wanted = [descriptors[name] for name in ("stdout", "stderr")]
        stdin = descriptors.get(process["stdin"])
        stdin = os.open("/dev/null", os.O_RDONLY) if stdin is None else stdin
        kept = place([stdin, *wanted, *(descriptors[name] for name in process["passed"]), failure])
        failure = kept[-1]
        os.set_inheritable(failure, False)
        if process["cwd"] != WORK:  # where the init is, and so this fork
            os.chdir(process["cwd"])
        kernel.first_to_die()
        os.umask(0o022)
        kernel.set_limits(process["cpu_seconds"], process["tasks"], OPEN_FILES, process["stack_bytes"])
        if process["kind"] == EXEC:
            confinement.drop(process["uid"], dumpable=True)
            write_files(process)
            execute(process)
        confinement.drop(process["uid"], dumpable=process["uid"] == JUDGED_UID)
        write_files(process)
        os.close(failure)
    except BaseException as error:  # noqa: BLE001 - told to the host, whatever it is
        os.write(failure, f"{type(error).__name__}: {error}".encode()[:4000])
        os._exit(125)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(process["env"])
    gc.enable()
    from . import interpreter, runners

    interpreter.begin()
    interpreter.deepen(process["stack_bytes"] // interpreter.STACK_BYTES_A_LEVEL)

    run = runners.runner(process["kind"])
    return lambda: run(list(range(3, 3 + len(process["passed"]))), process)


def place(descriptors: "list[int]") -> "list[int]":
    """Move the descriptors to 0, 1, 2, … in this order and close every other one."""
    base = 200
    for index, descriptor in enumerate(descriptors):
        os.dup2(descriptor, base + index)
    for index in range(len(descriptors)):
        os.dup2(base + index, index)
    os.closerange(len(descriptors), OPEN_FILES)
    return list(range(len(descriptors)))


def write_files(process: Json) -> None:
    """Write the files that the process is to find, as the process's own user."""
    for path, name in process["files"].items():
        descriptor = 3 + process["passed"].index(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(os.pread(descriptor, 1 << 30, 0))


def execute(process: Json) -> None:
    """Replace this process by the program; a program that cannot be started is told apart from a fault."""
    kernel.reset_signals()
    try:
        os.execve(process["argv"][0], process["argv"], process["env"])
    except OSError as error:
        os.write(len(process["passed"]) + 3, f"exec: {error.strerror}".encode())
        os._exit(126)
