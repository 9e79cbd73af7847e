"""The first process of a jail: runs one process after another for the host and tells it truly how each ended.

    host ──request (+ descriptors)──► init ──fork──► the judged process, stripped of every privilege
         ◄──report (+ output bytes)──      ◄─pipes──

It never runs judged code, never keeps a program, an input or a result longer than it takes to pass it
on (a program and its input arrive as descriptors and are read after the fork), and never parses what a
judged process wrote: those bytes go to the host as they are. Judged processes have another uid, cannot
see it in /proc, and its signals do not reach it: it is process 1.

Before every test `/tmp` is a new, empty file system and no other process is alive.

Arguments: one JSON object, `control` (the descriptor of the host's socket), `meters` (descriptors of the
control group's files), `python` (whether forks will run answers) and
`users` (whether the jail has several users). Standard library only.
"""

# ruff: noqa: PTH100, PTH101, PTH102, PTH103, PTH110, PTH120, PTH123 - every jail would load pathlib for a handful of calls

import array
import contextlib
import gc
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kernel
import meters

HEADER = struct.Struct(">I")
MAX_REQUEST_BYTES = 1 << 20
MAX_DESCRIPTORS = 16
TEST_FOLDER, BUILD_FOLDER = "/tmp", "/build"
READ_BYTES = 1 << 16
FAILURE_BYTES = 4096
STACK_BYTES = 64 << 20
OPEN_FILES = 1024
LAUNCHER = "/headwater-launch"
WHOLE_PROC = "/headwater-proc"
FIRST_PID = b"9"
SETTLED_BYTES = 16 << 20
SETTLE_TRIES = 200
SETTLE_MILLISECONDS = 5
LOWEST_OWN = 16
"""Descriptors of ours lie at and above this: the launcher's places are below."""
JUDGED_UID = 1000
"""The answer's. Processes of ours that must be out of its reach have another."""
# what judged programs import most, loaded once before the first fork
PRELOADED = (
    "abc bisect collections copy dataclasses datetime decimal fractions functools hashlib heapq io itertools "
    "linecache math operator os queue random re resource site statistics string sys threading time traceback "
    "types typing"
)

Json = dict[str, Any]
Judged = Callable[[], None]


class HostIsGone(Exception):
    """The service closed its end: there is nobody left to judge for."""


class Stream:
    """What one pipe of a process has brought so far: kept up to a cap, counted to one beyond.

    Kept in pages of its own that go back to the kernel afterwards: a later test is a fork of this process,
    and would find in its heap what an earlier one wrote.
    """

    def __init__(self, descriptor: int, cap: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.cap = cap
        self.size = 0
        self.truncated = False
        self.open = True
        self.pages = mmap.mmap(-1, cap + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def read(self) -> bool:
        """Read what is there; False when it would have to wait. At the end it closes itself."""
        with memoryview(self.pages) as whole, whole[self.size : self.size + READ_BYTES] as room:
            try:
                count = os.readv(self.descriptor, [room])
            except BlockingIOError:
                return False
        if not count:
            self.close()
            return False
        self.size += count
        if self.size > self.cap:
            self.size, self.truncated = self.cap, True
        return True

    def drain(self) -> None:
        """Read the rest, now that every writer is dead."""
        while self.open and not self.truncated and self.read():
            pass
        if self.open:
            self.close()

    def close(self) -> None:
        """Stop reading."""
        os.close(self.descriptor)
        self.open = False

    def text(self) -> str:
        """The whole of it; only for what this package's own code wrote."""
        return self.pages[: self.size].decode("utf-8", "replace")


class Init:
    """One jail's life: serve requests until the host hangs up."""

    def __init__(self, control: int, files: "dict[str, int]", *, users: bool) -> None:
        self.control = socket.socket(fileno=control)
        self.meters = meters.open_meters(files)
        self.base_bytes = self.meters.held_bytes()
        self.expected_bytes = self.base_bytes
        self.last_peak_bytes = 0
        self.confinement = kernel.Confinement(users=users)
        self.users = users
        self.launcher = os.path.exists(LAUNCHER)
        self.last_pid = os.open(f"{WHOLE_PROC}/sys/kernel/ns_last_pid", os.O_RDWR)
        kernel.unmount(WHOLE_PROC)
        self.filter = os.memfd_create("filter")
        os.write(self.filter, kernel.seccomp_filter())
        self.cores = os.cpu_count() or 1
        self.disk: tuple[int, int] | None = None
        self.build_writable = True

    def serve(self) -> Judged:
        """Answer requests. Returns only in a forked child, with what that child has to do."""
        self.send({"ready": True, "python": sys.version.split()[0]})
        while True:
            request, descriptors = self.receive()
            if request["op"] == "run":
                child = self.run(request, descriptors)
                if child is not None:
                    return child
                self.fresh_folder(request["disk_bytes"], request["inodes"])
            elif request["op"] == "wipe":
                self.wipe_build(request)
                self.expected_bytes = self.base_bytes
                self.send({"settled": self.last_peak_bytes < SETTLED_BYTES or self.settle()})

    # the host's socket

    def receive(self) -> "tuple[Json, list[int]]":
        """Read one request and the descriptors that came with it, and not a byte of the next."""
        descriptors = array.array("i")
        space = socket.CMSG_SPACE(MAX_DESCRIPTORS * descriptors.itemsize)
        head, extra, _, _ = self.control.recvmsg(HEADER.size, space, socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        head += self.exactly(HEADER.size - len(head)) if head else b""
        if not head:
            raise HostIsGone
        (size,) = HEADER.unpack(head)
        return json.loads(self.exactly(size)), list(descriptors)

    def exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self.control.recv(size)
            if not part:
                raise HostIsGone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def send(self, report: Json, *streams: Stream) -> None:
        """Report, and hand the bytes of the streams on as they are."""
        report["sizes"] = [stream.size for stream in streams]
        text = json.dumps(report).encode()
        self.control.sendall(HEADER.pack(len(text)) + text)
        for stream in streams:
            with memoryview(stream.pages) as whole, whole[: stream.size] as kept:
                self.control.sendall(kept)

    # fresh writable state

    def fresh_folder(self, size_bytes: int, inodes: int) -> None:
        """Replace `/tmp`, whole, by a new and empty file system."""
        if self.disk is not None:
            kernel.unmount(TEST_FOLDER)
        kernel.mount_tmpfs(TEST_FOLDER, size_bytes, inodes, 0o1777)
        self.disk = (size_bytes, inodes)
        for name, mode in (("work", 0o777), ("shm", 0o1777)):
            path = f"{TEST_FOLDER}/{name}"
            os.mkdir(path)
            os.chmod(path, mode)

    def wipe_build(self, request: Json) -> None:
        """Begin a job: nothing of the one before is left where programs are built."""
        kernel.unmount(BUILD_FOLDER)
        owner = JUDGED_UID if self.users else 0
        kernel.mount_tmpfs(BUILD_FOLDER, request["build_bytes"], request["inodes"], 0o700, owner)
        self.build_writable = True

    # one run

    def run(self, request: Json, received: "list[int]") -> "Judged | None":
        """Start the processes of one run, wait, report. In the child: what it has to do."""
        if self.disk != (request["disk_bytes"], request["inodes"]):
            self.fresh_folder(request["disk_bytes"], request["inodes"])
        writable = bool(request.get("build_writable"))
        if writable != self.build_writable:
            kernel.remount(BUILD_FOLDER, read_only=not writable)
            self.build_writable = writable
        named = dict(zip(request["descriptors"], received, strict=True))
        pipes: dict[str, int] = {}
        ends: dict[str, int] = {}
        for name in ("stdout", "stderr", "result", "failure"):
            ours, theirs = os.pipe()
            if name in ("stdout", "stderr"):
                os.fchmod(theirs, 0o666)  # programs open /dev/stdout
            pipes[name] = ours
            ends[name] = theirs
        if len(request["processes"]) > 1:
            left, right = socket.socketpair()
            ends["link"], ends["link:peer"] = left.detach(), right.detach()
        # every test sees the same process ids, so that none can be told anything by them
        os.pwrite(self.last_pid, FIRST_PID, 0)
        if self.last_peak_bytes >= SETTLED_BYTES:
            self.settle()
        before = self.meters.start()
        started = time.monotonic_ns()
        main = 0
        for index, process in enumerate(request["processes"]):
            if self.launcher and process["kind"] == "exec" and not process["passed"]:
                child = self.launch(process, {**named, **ends})
            else:
                child = os.fork()
                if child == 0:
                    return self.in_child(process, {**named, **ends})
            main = main if index else child
        for descriptor in (*received, *ends.values()):
            os.close(descriptor)
        # made now, so that no child has a copy of the pages
        caps = (request["output_bytes"], request["output_bytes"], request["result_bytes"], FAILURE_BYTES)
        streams = [Stream(pipes[name], cap) for name, cap in zip(pipes, caps, strict=True)]
        stop, status = self.watch(request, streams, main, before, started)
        wall = time.monotonic_ns() - started
        statuses = self.kill_everything()
        for stream in streams:
            stream.drain()
        if status is None:
            status = statuses.get(main, signal.SIGKILL)
        stdout, stderr, result, failure = streams
        spent = self.meters.since(before)
        self.last_peak_bytes = spent["peak_bytes"]
        self.send(
            {
                "status": status,
                "stop": stop,
                "wall_ns": wall,
                **spent,
                "stdout_truncated": stdout.truncated,
                "stderr_truncated": stderr.truncated,
                "result_truncated": result.truncated,
                "failure": failure.text(),
            },
            stdout,
            stderr,
            result,
        )
        for stream in streams:
            stream.pages.close()
        return None

    def settle(self) -> bool:
        """Wait until the memory of the run before is free; whether it is. What stays is not waited for again.

        The kernel frees some of it late (descriptors left in flight in sockets are collected when some
        socket is closed) and tells nobody when.
        """
        for _ in range(SETTLE_TRIES):
            if self.meters.held_bytes() - self.expected_bytes < SETTLED_BYTES:
                return True
            for end in socket.socketpair():
                end.close()
            select.poll().poll(SETTLE_MILLISECONDS)
        self.expected_bytes = self.meters.held_bytes()
        return False

    def watch(
        self, request: Json, streams: "list[Stream]", main: int, before: meters.Reading, started: int
    ) -> "tuple[str | None, int | None]":
        """Wait until the main process ends or a limit is reached: (which limit, wait status if it ended)."""
        poll = select.poll()
        poll.register(self.control, select.POLLHUP)
        main_handle = os.pidfd_open(main)
        poll.register(main_handle, select.POLLIN)
        by_descriptor = {stream.descriptor: stream for stream in streams}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        deadline = started + request["wall_ns"]
        try:
            while True:
                cpu_left = request["cpu_ns"] - self.meters.cpu_ns(before)
                if cpu_left <= 0:
                    return "cpu", None
                wall_left = deadline - time.monotonic_ns()
                if wall_left <= 0:
                    return "wall", None
                # all cores together cannot use the rest up sooner than this
                wait = min(wall_left, max(cpu_left // self.cores, 5_000_000))
                for descriptor, _ in poll.poll(wait // 1_000_000 + 1):
                    if descriptor == main_handle:
                        return None, os.waitpid(main, 0)[1]
                    if descriptor == self.control.fileno():
                        raise HostIsGone
                    stream = by_descriptor[descriptor]
                    stream.read()
                    if stream.truncated:
                        return ("result" if stream is streams[2] else "output"), None
                    if not stream.open:
                        poll.unregister(descriptor)
        finally:
            os.close(main_handle)

    def kill_everything(self) -> "dict[int, int]":
        """End every process of the jail but this one, and reap them all."""
        statuses: dict[int, int] = {}
        while True:
            with contextlib.suppress(ProcessLookupError):  # none is alive; zombies may be
                os.kill(-1, signal.SIGKILL)
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return statuses
            statuses[pid] = status

    def launch(self, process: Json, descriptors: "dict[str, int]") -> int:
        """Start a program by the native launcher, without a fork of this interpreter; its pid."""
        null = os.open("/dev/null", os.O_RDONLY)
        stdin = descriptors.get(process["stdin"], null)
        places = (stdin, descriptors["stdout"], descriptors["stderr"], descriptors["failure"], self.filter)
        numbers = (process["uid"], int(self.users), process["cpu_seconds"], process["tasks"], OPEN_FILES, STACK_BYTES)
        words = [LAUNCHER, *map(str, numbers), process["cwd"], *process["argv"]]
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, place) for place, descriptor in enumerate(places)]
        try:
            return os.posix_spawn(LAUNCHER, words, process["env"], file_actions=actions)
        finally:
            os.close(null)

    def in_child(self, process: Json, descriptors: "dict[str, int]") -> Judged:
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
            os.chdir(process["cwd"])
            kernel.first_to_die()
            os.umask(0o022)
            kernel.set_limits(process["cpu_seconds"], process["tasks"], OPEN_FILES, STACK_BYTES)
            if process["kind"] == "exec":
                self.confinement.drop(process["uid"], dumpable=True)
                write_files(process)
                execute(process)
            self.confinement.drop(process["uid"], dumpable=process["uid"] == JUDGED_UID)
            write_files(process)
            runner = process["kind"]
            os.close(failure)
        except BaseException as error:  # noqa: BLE001 - told to the host, whatever it is
            os.write(failure, f"{type(error).__name__}: {error}".encode()[:4000])
            os._exit(125)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(process["env"])
        gc.enable()
        import runners

        return lambda: runners.RUNNERS[runner](list(range(3, 3 + len(process["passed"]))), process)


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


def main() -> Judged:
    """Set this process up and serve."""
    arguments = json.loads(sys.argv[1])
    kernel.hide_self()
    # process 1 gets no signal from inside its namespace but one that it handles, and Python handles this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for descriptor in (arguments["control"], *arguments["meters"].values()):
        os.set_inheritable(descriptor, False)
    while os.open("/dev/null", os.O_RDONLY) < LOWEST_OWN:
        pass
    gc.disable()
    if arguments["python"]:
        # for Python the forks run the answers; for other languages they only start one, and forking is
        # the cheaper the less is loaded
        __import__("runners")
        for name in PRELOADED.split():
            __import__(name)
    init = Init(arguments["control"], arguments["meters"], users=arguments["users"])
    gc.collect()
    gc.freeze()
    return init.serve()


if __name__ == "__main__":
    try:
        judged = main()
    except HostIsGone:
        os._exit(0)
    judged()
