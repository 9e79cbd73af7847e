"""`project`: the test command in one process, the answer's side in another, and `answer` between them.

The test command's user cannot read the answer's tree, nor the answer's user the test files, so the command
cannot load the answer; it asks for it to be started, `answer [-i] COMMAND ARGUMENT...`:

    test command ──► answer ──command, three pipes──► a fork of the starter ──► the command
                            ◄──output, exit status──

All that is between them are bytes in pipes, copied here, and a status: no file of the test command's is ever
open in the answer. What the answer's side says may be a lie; it is the answer's own.

Run as a script, this file is `answer`.
"""

# ruff: noqa: PTH101, PTH103, PTH118, PTH120, PTH123 - every jail would load pathlib for a handful of calls

import json
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import NoReturn

ADDRESS = b"\0headwater-answer"
REPORT = 3
MAX_COMMAND_BYTES = 1 << 17
CHUNK_BYTES = 1 << 16
GRACE_SECONDS = 1.0
USAGE = "answer [-i] COMMAND [ARGUMENT...]: run it in the answer's tree, as its user; -i: with our standard input"
_STATUS = struct.Struct(">i")


def run_harness(descriptors: "list[int]", process: "dict[str, object]") -> None:
    """Unpack the test files, wait for the answer's side, become the test command: it reports on REPORT."""
    from . import kernel, programs
    from .protocol import TESTS, UNUSABLE

    # no folder above TESTS is the answer's to write in, and it is gone after the run
    _, link, tests, command = descriptors
    os.umask(0o077)
    try:
        for folder in ("files", "tools", "home", "tmp"):
            os.makedirs(f"{TESTS}/{folder}")
        for name, text in json.loads(programs.read_all(tests)).items():
            write(os.path.join(TESTS, "files", name), text)
        script = f'#!/usr/bin/sh\nexec {sys.executable} -I -S -B {os.path.abspath(__file__)} "$@"\n'  # noqa: PTH100
        write(f"{TESTS}/tools/answer", script)
        line = programs.read_all(command).decode()
        os.chdir(f"{TESTS}/files")
        os.read(link, 1)
        os.close(link)
        kernel.reset_signals()
        environment = {name: value for name, value in os.environ.items() if not value.startswith("/tmp")}
        environment["PATH"] = f"{TESTS}/tools:{environment['PATH']}"
        environment |= {"HOME": f"{TESTS}/home", "TMPDIR": f"{TESTS}/tmp"}
        os.execve("/usr/bin/sh", ["/usr/bin/sh", "-c", line], environment)
    except (OSError, ValueError) as error:
        os.write(REPORT, f"{UNUSABLE}{error}\n".encode(errors="replace"))
        os._exit(125)


def write(path: str, text: str) -> None:
    """Write a file, and make a script one that can be started."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if text.startswith("#!"):
        os.chmod(path, 0o700)


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
        try:
            pid = os.fork()
        except BlockingIOError:
            pid = -1  # no process is left to be had: the caller sees its connection close
        if pid == 0:
            listener.close()
            start(caller)
        caller.close()


def start(caller: socket.socket) -> NoReturn:
    """Run one command of one caller to its end, or to the caller's."""
    from . import kernel
    from .protocol import BUILD

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, _, _ = socket.recv_fds(caller, MAX_COMMAND_BYTES, 3)
    command: list[str] = json.loads(message.decode("utf-8", "surrogateescape"))
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        os.closerange(len(streams), 256)
        os.chdir(BUILD)
        kernel.reset_signals()
        try:
            os.execvp(command[0], command)
        except (OSError, ValueError) as error:
            os.write(2, f"{command[0]}: {error}\n".encode(errors="replace"))
            os._exit(126 if isinstance(error, PermissionError) else 127)
    for stream in streams:
        os.close(stream)
    poll = select.poll()
    handle = os.pidfd_open(pid)
    poll.register(handle, select.POLLIN)
    poll.register(caller, select.POLLHUP)
    if all(descriptor != handle for descriptor, _ in poll.poll()):
        kill_group(pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        caller.sendall(_STATUS.pack(status))
    except OSError:
        os._exit(1)  # the caller is gone
    os._exit(0)


def kill_group(pid: int) -> None:
    """Kill a command that leads a group of its own, or will in a moment."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)


def call(words: "list[str]") -> int:
    """Have the answer's side run a command: its exit status, as a shell shows it."""
    with_stdin = words[:1] == ["-i"]
    command = words[1:] if with_stdin else words
    message = json.dumps(command, ensure_ascii=False).encode("utf-8", "surrogateescape")
    if not command or len(message) > MAX_COMMAND_BYTES:
        print(USAGE if not command else "answer: the command is too long", file=sys.stderr)
        return 2
    stdin, to_stdin = os.pipe()
    from_stdout, stdout = os.pipe()
    from_stderr, stderr = os.pipe()
    for end in (stdin, stdout, stderr):
        os.fchmod(end, 0o666)  # programs open /dev/stdin and its like
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as starter:
        try:
            starter.connect(ADDRESS)
            socket.send_fds(starter, [message], [stdin, stdout, stderr])
            for end in (stdin, stdout, stderr):
                os.close(end)
            if not with_stdin:
                os.close(to_stdin)
            told = copy(starter, to_stdin if with_stdin else None, {from_stdout: 1, from_stderr: 2})
        except OSError as error:
            print(f"answer: the answer's side is gone: {error.strerror}", file=sys.stderr)
            return 125
    status = _STATUS.unpack(told)[0] if len(told) == _STATUS.size else 125
    return status if 0 <= status < 256 else 128 + (-status & 0x7F)


def copy(starter: socket.socket, to_stdin: "int | None", outputs: "dict[int, int]") -> bytes:
    """Copy what comes and goes until the command has ended and its output is read: what the starter told."""
    poll = select.poll()
    poll.register(starter, select.POLLIN)
    for end in outputs:
        os.set_blocking(end, False)
        poll.register(end, select.POLLIN)
    if to_stdin is not None:
        os.set_blocking(to_stdin, False)
        poll.register(0, select.POLLIN)
    waiting = b""
    while True:
        for end, _ in poll.poll():
            if end == starter.fileno():
                told = starter.recv(_STATUS.size)
                poll.unregister(starter)
                drain(poll, outputs)
                return told
            if end in outputs:
                if not pass_on(end, outputs[end]):
                    poll.unregister(end)
                    os.close(end)
                    del outputs[end]
                continue
            # our input: wait for it, then for room in the pipe, in turn; close the pipe at the end of either
            assert to_stdin is not None
            try:
                waiting = os.read(0, CHUNK_BYTES) if end == 0 else waiting[os.write(to_stdin, waiting) :]
                ended = end == 0 and not waiting
            except OSError:
                ended = True
            poll.unregister(end)
            if ended:
                os.close(to_stdin)
            elif waiting:
                poll.register(to_stdin, select.POLLOUT)
            else:
                poll.register(0, select.POLLIN)


def drain(poll: select.poll, outputs: "dict[int, int]") -> None:
    """Pass the rest on: to the end, or for GRACE_SECONDS where something that was left behind keeps a pipe open."""
    deadline = time.monotonic() + GRACE_SECONDS
    while outputs and (left := deadline - time.monotonic()) > 0:
        for end, _ in poll.poll(left * 1000):
            if end not in outputs or not pass_on(end, outputs[end]):
                poll.unregister(end)
                outputs.pop(end, None)


def pass_on(end: int, ours: int) -> bool:
    """Pass on what is there: whether there may ever be more."""
    try:
        data = os.read(end, CHUNK_BYTES)
    except BlockingIOError:
        return True
    if not data:
        return False
    try:
        while data:
            data = data[os.write(ours, data) :]
    except OSError:
        return False  # nobody listens to us any more
    return True


if __name__ == "__main__":
    sys.exit(call(sys.argv[1:]))
