"""One live jail on the host's side: start, run after run, end. Owns its nsjail, its socket, its group.

    starting ──ready──► idle ──run()──► busy ──report──► idle … ──kill()──► gone

Whatever fails while it is busy (cancellation too) leaves it in an unknown state: the owner kills it.
"""

import asyncio
import contextlib
import errno
import json
import os
import shlex
import signal
import socket
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sandbox.errors import JailLost, SandboxUnavailable
from sandbox.inside.protocol import JUDGED_UID, LAUNCHER, WORK
from sandbox.jail import confinement
from sandbox.jail.controlgroups import ControlGroup, Hierarchy
from sandbox.languages.packages import modules
from sandbox.languages.toolchains import Toolchain
from sandbox.limits import RunLimits

UIDS = 999
_HEADER = struct.Struct(">I")
_START_SECONDS = 60.0
_GRACE_SECONDS = 4.0
"""The init keeps every limit by itself; this much later it is taken for dead."""
_LIMIT_TRIES, _LIMIT_WAIT_SECONDS = 20, 0.05
_MAX_REPORT_BYTES = 1 << 16
_OVERHEAD_BYTES = 8 << 20
_OVERHEAD_PROCESSES = 4
"""In the group beside the judged: nsjail, the init, and one to spare for each of two processes of ours."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a run, as the init wants it."""

    kind: str
    """`exec`, or a name of `protocol.RUNNERS`."""
    uid: int = JUDGED_UID
    stdin: str = ""
    passed: tuple[str, ...] = ()
    """Names of descriptors, given to the process as 3, 4, …"""
    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cpu_seconds: int
    """Of one process: backs up the limit of all."""
    stack_bytes: int = 0
    """Set when it runs: all of its memory."""
    tasks: int = 0
    """Limit of the user's tasks; 0: the control group has it."""
    cwd: str = WORK
    files: dict[str, str] = {}
    """Paths to write first, each from a descriptor among `passed`."""
    nonce: str = ""
    entry_point: str = ""
    result_bytes: int = 0
    given: dict[str, str] = {}
    """Names that a Python answer finds in its module, each with the module that has it ("": is one itself)."""
    prelude: str = ""
    """A Python program that runs before the answer, in its module."""
    logs: bool = False
    """Of an answer that tests ask: whether they want its log records."""
    int_digits: int = 0
    """Digits of a whole number that Python reads and writes; 0: any."""
    int_keys: bool = False
    """Of a call's arguments: objects whose keys all are whole numbers have such keys."""
    returns: str = ""
    """`value`, `argument N`, or "": the value, or where that is None the first argument."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, as the init saw it."""

    status: int
    """As of waitpid, of the first process."""
    stop: str | None
    """The limit at which the init ended it: cpu, wall, output, result."""
    cpu_ns: int
    wall_ns: int
    peak_bytes: int
    memory_kills: int
    process_refusals: int
    stdout_truncated: bool
    stderr_truncated: bool
    result_truncated: bool
    failure: str
    """Not empty: the process could not be set up (`exec: …`: the program could not be started)."""
    sizes: tuple[int, int, int]
    lost: bool = False
    """The run took its jail with it: nothing else here was seen."""
    stdout: bytes = b""
    stderr: bytes = b""
    result: bytes = b""


@dataclass(frozen=True)
class Site:
    """What every jail of a Judge shares."""

    nsjail: Path
    hierarchy: Hierarchy
    staging: Path
    """An empty folder that any user may enter: private copies of the mount table put things there."""
    launcher: Path | None
    """See `launcher.py`."""
    root: bool
    token: int
    """Random: tells this Judge's groups and users from those of another."""

    @property
    def first_uid(self) -> int:
        """The first of the UIDS user ids that its jails have, three each: init, judged, tester."""
        return 1_000_000_000 + self.token * UIDS


class Jail:
    """A started nsjail with our init in it."""

    def __init__(self, site: Site, toolchain: Toolchain, number: int) -> None:
        self.site = site
        self.toolchain = toolchain
        self.number = number
        self.jobs = 0
        self.dead = False
        self.start_cpu_ns = 0
        self._group: ControlGroup | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._socket: socket.socket | None = None
        self._base_bytes = 0
        self._limits: tuple[int, int] | None = None

    async def start(self) -> None:
        """Start it and wait until its init is ready; SandboxUnavailable with nsjail's words if it is not."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._socket = ours
        opened: list[int] = []
        try:
            self._group = ControlGroup(self.site.hierarchy, f"{self.site.token}.{self.number}")
            meters = self._group.meter_files()
            opened += meters.values()
            arguments = json.dumps(
                {
                    "control": theirs.fileno(),
                    "meters": meters,
                    "python": not self.toolchain.language.run,
                    "preload": modules(self.toolchain.packages),
                    "users": self.site.root,
                }
            )
            pieces = confinement.binds(self.toolchain)
            if self.site.launcher is not None:
                pieces.append(confinement.Bind(str(self.site.launcher), LAUNCHER))
            staged, script = self._staged(pieces)
            text = confinement.configuration(staged, self._users(), theirs.fileno(), meters, [arguments])
            config = os.memfd_create("nsjail.cfg", os.MFD_CLOEXEC)
            opened.append(config)
            os.write(config, text.encode())
            self._process = await asyncio.create_subprocess_exec(
                *script,
                str(self.site.nsjail),
                "--config",
                f"/proc/self/fd/{config}",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(), *opened),
                start_new_session=True,
            )
        finally:
            theirs.close()
            for descriptor in opened:
                os.close(descriptor)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._receive_json()
        except (JailLost, TimeoutError) as error:
            words = await self._last_words()
            await self.kill()
            raise SandboxUnavailable(f"a jail does not start: {words or error}") from error
        self._base_bytes = self._group.memory_used_bytes()
        self.start_cpu_ns = self._group.cpu_ns()

    def _users(self) -> confinement.Users:
        if not self.site.root:
            return confinement.Users(os.getuid(), os.getuid(), os.getuid(), os.getgid())
        base = self.site.first_uid + self.number % (UIDS // 3) * 3
        return confinement.Users(base, base + 1, base + 2, base)

    def _staged(self, pieces: list[confinement.Bind]) -> tuple[list[confinement.Bind], list[str]]:
        """Prepare the command that joins the group and, in a mount table of its own, makes reachable what is not."""
        assert self._group is not None
        lines = [f"echo 0 > {shlex.quote(str(path))}" for path in self._group.entries]
        staged: list[confinement.Bind] = []
        folder = self.site.staging
        for index, piece in enumerate(pieces):
            if not self.site.root or confinement.reachable(piece.source):
                staged.append(piece)
                continue
            place = shlex.quote(str(folder / str(index)))
            source = shlex.quote(piece.source)
            lines.append(f"if [ -d {source} ]; then mkdir {place}; else : > {place}; fi; mount --bind {source} {place}")
            staged.append(confinement.Bind(str(folder / str(index)), piece.target))
        own_table: list[str] = []
        if staged != pieces:
            lines.insert(0, f"mount -t tmpfs -o size=64k,mode=755 headwater {shlex.quote(str(folder))}")
            own_table = ["unshare", "--mount", "--propagation", "private"]
        return staged, [*own_table, "sh", "-e", "-c", "\n".join([*lines, 'exec "$0" "$@"'])]

    # one run

    async def limit(self, limits: RunLimits, result_bytes: int) -> None:
        """Set the group's limits for the runs that follow. JailLost where what a run left takes more than that."""
        assert self._group is not None
        slack = _OVERHEAD_BYTES + 2 * limits.output_bytes + result_bytes
        wanted = (self._base_bytes + limits.memory_bytes + slack, limits.processes + _OVERHEAD_PROCESSES)
        if wanted != self._limits:
            for left in reversed(range(_LIMIT_TRIES)):
                try:
                    self._group.limit(*wanted)
                    break
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        raise
                    if not left:
                        raise JailLost("what was built takes more memory than the limit", out_of_memory=True) from error
                # the init empties /tmp after its report, and nobody tells when the kernel has the memory back
                await asyncio.sleep(_LIMIT_WAIT_SECONDS)
            self._limits = wanted

    async def wipe(self) -> None:
        """Begin a job: nothing that an earlier one built is left. JailLost if its memory does not come back."""
        self.jobs += 1
        self._send({"op": "wipe", "build_bytes": confinement.BUILD_BYTES, "inodes": 4096, "descriptors": []}, ())
        try:
            async with asyncio.timeout(_START_SECONDS):
                answer = await self._receive_json()
        except TimeoutError:
            raise JailLost("the jail's init does not answer") from None
        if not answer["settled"]:
            raise JailLost("the memory of the job before does not come back")

    async def run(
        self,
        processes: Sequence[Process],
        limits: RunLimits,
        descriptors: dict[str, int],
        *,
        result_bytes: int = 4096,
        build_writable: bool = False,
    ) -> Report:
        """Run the processes until the first of them ends or a limit is reached. The descriptors stay ours."""
        await self.limit(limits, result_bytes)
        tasks = 0 if "pids" in self.site.hierarchy.parents else limits.processes + _OVERHEAD_PROCESSES
        stack = limits.memory_bytes
        processes = [msgspec.structs.replace(process, tasks=tasks, stack_bytes=stack) for process in processes]
        request: dict[str, Any] = {
            "op": "run",
            "descriptors": list(descriptors),
            "processes": processes,
            "cpu_ns": int(limits.cpu_seconds * 1e9),
            "wall_ns": int(limits.wall_seconds * 1e9),
            "output_bytes": limits.output_bytes,
            "result_bytes": result_bytes,
            "disk_bytes": limits.disk_bytes,
            "inodes": limits.inodes,
            "build_writable": build_writable,
        }
        kills = self._group.memory_kills() if self._group else 0
        self._send(request, tuple(descriptors.values()))
        try:
            async with asyncio.timeout(limits.wall_seconds + _GRACE_SECONDS):
                report = msgspec.json.decode(await self._receive(), type=Report)
                blobs = [await self._exactly(size) for size in report.sizes]
        except TimeoutError:
            raise JailLost("the jail's init does not answer") from None
        except JailLost as error:
            error.out_of_memory = bool(self._group and self._group.memory_kills() > kills)
            raise
        return msgspec.structs.replace(report, stdout=blobs[0], stderr=blobs[1], result=blobs[2])

    def _send(self, request: dict[str, Any], descriptors: tuple[int, ...]) -> None:
        assert self._socket is not None
        text = msgspec.json.encode(request)
        try:
            sent = socket.send_fds(self._socket, [_HEADER.pack(len(text)) + text], list(descriptors))
        except OSError as error:
            raise JailLost(f"the jail is gone: {error.strerror}") from error
        if sent != len(text) + _HEADER.size:
            raise JailLost("the jail's init does not read")

    async def _receive(self) -> bytes:
        (size,) = _HEADER.unpack(await self._exactly(_HEADER.size))
        if size > _MAX_REPORT_BYTES:
            raise JailLost("the jail's init sent nonsense")
        return await self._exactly(size)

    async def _receive_json(self) -> dict[str, Any]:
        return msgspec.json.decode(await self._receive(), type=dict[str, Any])

    async def _exactly(self, size: int) -> bytes:
        assert self._socket is not None
        data = bytearray(size)
        view = memoryview(data)
        loop = asyncio.get_running_loop()
        while view:
            try:
                count = await loop.sock_recv_into(self._socket, view)
            except OSError as error:
                raise JailLost(f"the jail is gone: {error.strerror}") from error
            if count == 0:
                raise JailLost("the jail is gone")
            view = view[count:]
        return bytes(data)

    # its end

    async def _last_words(self) -> str:
        assert self._process is not None
        assert self._process.stderr is not None
        if self._socket is not None:
            self._socket.close()
        try:
            async with asyncio.timeout(5):
                words = await self._process.stderr.read(1 << 16)
        except TimeoutError:
            return ""
        lines = [line for line in words.decode("utf-8", "replace").splitlines() if "no version information" not in line]
        return " / ".join(lines)[-1500:]

    async def kill(self) -> None:
        """End everything in it and take away what it used. Safe to call twice, safe from cancellation."""
        if self.dead:
            return
        self.dead = True
        await asyncio.shield(self._end())

    async def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._group is not None:
            self._group.kill()
        if self._process is not None:
            if self._process.returncode is None:
                # not Process.kill(): it would reap the process behind asyncio's back
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        if self._group is not None:
            await self._group.remove()
