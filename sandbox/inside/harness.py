"""`project`: the task's test command in one process, the answer's side in another, and `answer` between them.

The test command's user cannot read the answer's tree, nor the answer's user the test files, so the command
cannot load the answer; it starts it, `answer COMMAND ARGUMENT...`, with its own standard streams:

    test command ──► answer ──command, descriptors 0-2──► a fork of the starter ──► the command
                            ◄──exit status──

What the answer's side says is a status only. It may lie; it is the answer's own.

Run as a script, this file is `answer`.
"""

# ruff: noqa: PTH103, PTH118, PTH120, PTH123 - every jail would load pathlib for a handful of calls

import json
import os
import select
import signal
import socket
import struct
import sys
from typing import NoReturn

ADDRESS = b"\0headwater-answer"
TESTS, TOOLS, TREE = "/tmp/tests", "/tmp/tools", "/build"
REPORT = 3
MAX_COMMAND_BYTES = 1 << 17
_STATUS = struct.Struct(">i")


def run_harness(descriptors: "list[int]", process: "dict[str, object]") -> None:
    """Unpack the test files, wait for the answer's side, become the test command: it reports on REPORT."""
    from . import kernel, programs

    _, link, tests, command = descriptors
    os.umask(0o077)
    os.makedirs(TESTS)
    for name, text in json.loads(programs.read_all(tests)).items():
        write(os.path.join(TESTS, name), text)
    os.makedirs(TOOLS)
    write(f"{TOOLS}/answer", f'#!/usr/bin/sh\nexec {sys.executable} -I -S -B {os.path.abspath(__file__)} "$@"\n')  # noqa: PTH100
    os.environ["PATH"] = f"{TOOLS}:{os.environ['PATH']}"
    line = programs.read_all(command).decode()
    os.chdir(TESTS)
    os.read(link, 1)
    os.close(link)
    kernel.reset_signals()
    os.execve("/usr/bin/sh", ["/usr/bin/sh", "-c", line], os.environ)


def write(path: str, text: str) -> None:
    """Write a file, and make a script one that can be started."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if text.startswith("#!"):
        os.chmod(path, 0o700)  # noqa: PTH101


def run_starter(descriptors: "list[int]", process: "dict[str, object]") -> None:
    """Start the answer whenever the test command asks, each time in a fork of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(ADDRESS)
    listener.listen(64)
    os.write(descriptors[0], b"!")
    os.close(descriptors[0])
    while True:
        caller, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            start(caller)
        caller.close()


def start(caller: socket.socket) -> NoReturn:
    """Run one command of one caller to its end, or to the caller's."""
    from . import kernel

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, _, _ = socket.recv_fds(caller, MAX_COMMAND_BYTES, 3)
    command: list[str] = json.loads(message)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        os.closerange(len(streams), 256)
        os.chdir(TREE)
        kernel.reset_signals()
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    for stream in streams:
        os.close(stream)
    poll = select.poll()
    handle = os.pidfd_open(pid)
    poll.register(handle, select.POLLIN)
    poll.register(caller, select.POLLHUP)
    if all(descriptor != handle for descriptor, _ in poll.poll()):
        os.killpg(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        caller.sendall(_STATUS.pack(status))
    except OSError:
        os._exit(1)  # the caller is gone
    os._exit(0)


def call(command: "list[str]") -> int:
    """Have the answer's side run a command: its exit status, as a shell shows it."""
    if not command:
        print("answer COMMAND [ARGUMENT...]: run a command in the answer's tree, as its user", file=sys.stderr)
        return 2
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as starter:
        try:
            starter.connect(ADDRESS)
            socket.send_fds(starter, [json.dumps(command).encode()], [0, 1, 2])
            told = starter.recv(_STATUS.size)
        except OSError as error:
            print(f"answer: the answer's side is gone: {error.strerror}", file=sys.stderr)
            return 125
    status = _STATUS.unpack(told)[0] if len(told) == _STATUS.size else 125
    return status if 0 <= status < 256 else 128 + (-status & 0x7F)


if __name__ == "__main__":
    sys.exit(call(sys.argv[1:]))
