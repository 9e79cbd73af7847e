"""The first process of a jail: runs one process after another for the host and tells it truly how each ended.

    host ──request (+ descriptors)──► init ──fork──► the judged process, stripped of every privilege
         ◄──report (+ output bytes)──      ◄─pipes──

It never runs judged code, never keeps a program, an input or a result longer than it takes to pass it
on (a program and its input arrive as descriptors and are read after the fork), and never parses what a
judged process wrote: those bytes go to the host as they are. Judged processes have another uid, cannot
see it in /proc, and its signals do not reach it: it is process 1.

Before every test `/tmp` is a new, empty file system and no other process is alive.

Arguments: one JSON object, `control` (the descriptor of the host's socket), `meters` (descriptors of the
control group's files), `python` (whether forks will run answers), `preload` (modules of packages that the
task names) and `users` (whether the jail has several users). Standard library only, but for those packages.
"""

# ruff: noqa: PTH101, PTH102, PTH110 - every jail would load pathlib for a handful of calls

import array
import contextlib
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import time

from . import kernel, meters
from .child import OPEN_FILES, Json, Judged, in_child
from .protocol import BUILD, EXEC, JUDGED_UID, LAUNCHER, SITE, TEST, TESTER_UID, TESTS, WHOLE_PROC, WORK
from .stream import Stream

HEADER = struct.Struct(">I")
MAX_DESCRIPTORS = 16
FAILURE_BYTES = 4096
FIRST_PID = b"9"
SETTLED_BYTES = 16 << 20
SETTLE_TRIES = 200
SETTLE_MILLISECONDS = 5
LOWEST_OWN = 16
"""Descriptors of ours lie at and above this: the launcher's places are below."""
# what judged programs import most, loaded once before the first fork
PRELOADED = (
    "abc bisect collections copy dataclasses datetime decimal fractions functools hashlib heapq io itertools "
    "linecache math operator os queue random re resource site statistics string sys threading time traceback "
    "types typing"
)


class HostIsGone(Exception):
    """The service closed its end: there is nobody left to judge for."""


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
        os.chdir("/")
        if self.disk is not None:
            kernel.unmount(TEST)
        kernel.mount_tmpfs(TEST, size_bytes, inodes, 0o1777)
        self.disk = (size_bytes, inodes)
        for name, mode in (("work", 0o777), ("shm", 0o1777)):
            path = f"{TEST}/{name}"
            os.mkdir(path)
            os.chmod(path, mode)
        if self.users:
            # the program's own, as a folder is that one starts a program in: it may change its mode and times
            os.chown(WORK, JUDGED_UID, JUDGED_UID)
        # what is started finds itself in it: by its name one could come too late, for the program may move it away
        os.chdir(WORK)

    def wipe_build(self, request: Json) -> None:
        """Begin a job: nothing of the one before is left where programs are built."""
        kernel.unmount(BUILD)
        owner = JUDGED_UID if self.users else 0
        kernel.mount_tmpfs(BUILD, request["build_bytes"], request["inodes"], 0o700, owner)
        self.build_writable = True

    # one run

    def run(self, request: Json, received: "list[int]") -> "Judged | None":
        """Start the processes of one run, wait, report. In the child: what it has to do."""
        if self.disk != (request["disk_bytes"], request["inodes"]):
            self.fresh_folder(request["disk_bytes"], request["inodes"])
        writable = bool(request.get("build_writable"))
        if writable != self.build_writable:
            kernel.remount(BUILD, read_only=not writable)
            self.build_writable = writable
        apart = any(process["kind"] == "harness" for process in request["processes"])
        if apart:
            owner = TESTER_UID if self.users else 0
            kernel.mount_tmpfs(TESTS, request["disk_bytes"], request["inodes"], 0o700, owner)
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
            if self.launcher and process["kind"] == EXEC and not process["passed"]:
                child = self.launch(process, {**named, **ends})
            else:
                child = os.fork()
                if child == 0:
                    return in_child(self.confinement, process, {**named, **ends})
            main = main if index else child
        for descriptor in (*received, *ends.values()):
            os.close(descriptor)
        # made now, so that no child has a copy of the pages
        caps = (request["output_bytes"], request["output_bytes"], request["result_bytes"], FAILURE_BYTES)
        streams = [Stream(pipes[name], cap) for name, cap in zip(pipes, caps, strict=True)]
        stop, status = self.watch(request, streams, main, before, started)
        wall = time.monotonic_ns() - started
        statuses = self.kill_everything()
        if apart:
            kernel.unmount(TESTS)
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
        limits = (process["cpu_seconds"], process["tasks"], OPEN_FILES, process["stack_bytes"])
        numbers = (process["uid"], int(self.users), *limits)
        words = [LAUNCHER, *map(str, numbers), "." if process["cwd"] == WORK else process["cwd"], *process["argv"]]
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, place) for place, descriptor in enumerate(places)]
        try:
            return os.posix_spawn(LAUNCHER, words, process["env"], file_actions=actions)
        finally:
            os.close(null)


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
        from . import interpreter, runners

        runners.load_all()
        interpreter.deepen(0)  # finds out once where that limit is
        for name in PRELOADED.split():
            __import__(name)
        if arguments["preload"]:
            sys.path.append(SITE)
        for name in arguments["preload"]:
            # one that cannot be loaded is for the program to import, and to see why
            with contextlib.suppress(Exception):
                __import__(name)
    init = Init(arguments["control"], arguments["meters"], users=arguments["users"])
    gc.collect()
    gc.freeze()
    return init.serve()


def start() -> None:
    """Be process 1; in a fork, be the judged process."""
    try:
        judged = main()
    except HostIsGone:
        os._exit(0)
    judged()
