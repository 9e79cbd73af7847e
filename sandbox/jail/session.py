"""One job in one jail: compile, then run after run, with a fresh jail when one is lost.

A jail that a program takes down with it is replaced and the run tried again; when that happens twice
while a fresh jail starts without trouble, the program is to blame and the run counts as its crash. So a
grader fault is left for what the program cannot cause.
"""

import fcntl
import os
import secrets
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager

from sandbox import judgement
from sandbox.errors import GraderFault, JailLost, TaskFault
from sandbox.inside.protocol import BUILD, EXEC, PYTEST
from sandbox.jail.compile_cache import MAX_ENTRY_BYTES, CompileCache
from sandbox.jail.confinement import pytest_packages
from sandbox.jail.jails import Jail, Process, Report
from sandbox.languages.language import ENVIRONMENT, ONE_THREAD
from sandbox.languages.toolchains import Toolchain
from sandbox.limits import COMPILE, RunLimits
from sandbox.reward_rule import shorten

MAX_LOG_CHARACTERS = 4000
_TRIES = 2
_KILLED = 9
TakeJail = Callable[[], Awaitable[Jail]]
OpenSession = Callable[..., Awaitable["Session"]]
"""Starts a session for a program of the task's (a checker, a reward function), in a jail of its own."""


class Spent:
    """CPU time of one job by part: start (of its jails, if new), compile, cache, run."""

    def __init__(self) -> None:
        self.parts: dict[str, int] = {}

    def add(self, part: str, cpu_ns: int) -> None:
        """Count more of a part."""
        self.parts[part] = self.parts.get(part, 0) + cpu_ns

    @property
    def seconds(self) -> float:
        """All parts together."""
        return sum(self.parts.values()) / 1e9


class CompileError(Exception):
    """The program does not compile; `str()` is the log. Caught where the judgement is made."""


@contextmanager
def sealed(*contents: bytes) -> Generator[list[int]]:
    """Put bytes into memory files that a program can read and not change."""
    files: list[int] = []
    try:
        for content in contents:
            file = os.memfd_create("headwater", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            files.append(file)
            view = memoryview(content)
            while view:
                view = view[os.write(file, view) :]
            os.lseek(file, 0, os.SEEK_SET)
            _seal(file)
        yield files
    finally:
        for file in files:
            os.close(file)


@contextmanager
def pipes(*contents: bytes) -> Generator[list[int]]:
    """Put a few bytes each into pipes: whoever reads them first has them, and nobody after."""
    ends: list[int] = []
    try:
        for content in contents:
            end, into = os.pipe()
            ends.append(end)
            try:
                os.write(into, content)
            finally:
                os.close(into)
        yield ends
    finally:
        for end in ends:
            os.close(end)


def _seal(file: int) -> None:
    fcntl.fcntl(
        file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    )


class Session:
    """The life of one job. `take` gives a jail of the language; `jail` is the one in use."""

    def __init__(
        self,
        toolchain: Toolchain,
        program: bytes,
        take: TakeJail,
        another: OpenSession,
        spent: "Spent",
        cache: CompileCache | None,
        standard: str | None = None,
    ) -> None:
        language = toolchain.language
        if standard is not None and not language.standard:
            raise TaskFault(f"{language.name} has no standards to choose from: {standard!r}")
        self.source, main = language.entry(program) if language.entry else (language.source, "")
        self._named = {"source": self.source, "main": main, "standard": standard or language.standard}
        self.another = another
        self.spent = spent
        self.cache = cache
        self.toolchain = toolchain
        self.language = toolchain.language
        self.program = program
        self.take = take
        self.jail: Jail | None = None
        self.environment = {**ENVIRONMENT, **self.language.environment}
        if toolchain.packages:
            self.environment |= ONE_THREAD
        if toolchain.project:
            self.environment["PATH"] = ":".join((*toolchain.folders, ENVIRONMENT["PATH"]))
            if not self.language.run and pytest_packages():
                self.environment["PYTHONPATH"] = PYTEST

    def command(self, words: tuple[str, ...], limits: RunLimits) -> tuple[str, ...]:
        """Fill a command of the language in for this program."""
        return self.toolchain.command(words, limits, **self._named)

    async def open(self) -> None:
        """Take a jail, wipe it and compile the program in it."""
        self.jail = await self._taken()
        if self.language.compile is not None and not self.toolchain.project:
            await self._compile()

    async def _taken(self) -> Jail:
        """Take a jail and wipe it. One that died while it was idle is nobody's fault: take another."""
        while True:
            jail = await self.take()
            new = jail.jobs == 0
            if new:
                self.spent.add("start", jail.start_cpu_ns)
            try:
                await jail.wipe()
            except JailLost:
                await jail.kill()
                if new:
                    raise
                continue
            return jail

    async def _compile(self) -> None:
        assert self.jail is not None
        assert self.language.compile is not None
        limits = self.language.compile_limits
        command = self.command(self.language.compile, limits)
        key = self.cache.key(self.toolchain, command, self.program) if self.cache else ""
        built = self.cache.get(key) if self.cache else None
        if built is not None and await self._restore(built):
            return
        process = Process(
            kind=EXEC,
            argv=command,
            env=self.environment,
            cwd=BUILD,
            files={f"{BUILD}/{self.source}": "program"},
            passed=("program",),
            cpu_seconds=process_cpu_seconds(limits),
        )
        with sealed(self.program) as (program,):
            report = await self.jail.run([process], limits, {"program": program}, build_writable=True)
        self._account("compile", report)
        if report.failure:
            raise GraderFault(f"{self.language.name}: {report.failure}")
        if not judgement.ended_well(report):
            log = (report.stderr + report.stdout).decode("utf-8", "replace").replace(f"{BUILD}/", "")
            limit = judgement.limit_reached(report, limits)
            if limit is not None:
                log = f"The compiler {judgement.LIMIT_WORDS[limit]}.\n{log}"
            raise CompileError(shorten(log.strip(), MAX_LOG_CHARACTERS) or judgement.ending(report))
        if self.cache is not None:
            await self._keep(self.cache, key)

    async def _keep(self, cache: CompileCache, key: str) -> None:
        """Read what was built out of the jail, as the judged user, and keep it."""
        assert self.jail is not None
        process = Process(kind="pack", env=self.environment, passed=("result",), cpu_seconds=10)
        report = await self.jail.run([process], COMPILE, {}, result_bytes=MAX_ENTRY_BYTES)
        self._account("cache", report)
        if judgement.ended_well(report) and not report.result_truncated:
            cache.put(key, report.result)

    async def _restore(self, built: bytes) -> bool:
        """Put back what was built before; whether it is all there."""
        assert self.jail is not None
        process = Process(kind="unpack built", env=self.environment, passed=("built",), cpu_seconds=10)
        with sealed(built) as (file,):
            report = await self.jail.run([process], COMPILE, {"built": file}, build_writable=True)
        self._account("cache", report)
        return judgement.ended_well(report)

    async def run(
        self,
        processes: Sequence[Process],
        limits: RunLimits,
        contents: dict[str, bytes],
        *,
        once: dict[str, bytes] | None = None,
        result_bytes: int = 4096,
        build_writable: bool = False,
    ) -> Report:
        """Run processes; `contents` become their descriptors by name, and so does `once`, which can be read once."""
        names = [*contents, *(once or {})]
        for attempt in range(_TRIES):
            try:
                if self.jail is None:
                    await self.open()
                assert self.jail is not None
                with sealed(*contents.values()) as files, pipes(*(once or {}).values()) as ends:
                    descriptors = dict(zip(names, [*files, *ends], strict=True))
                    report = await self.jail.run(
                        processes, limits, descriptors, result_bytes=result_bytes, build_writable=build_writable
                    )
            except JailLost as error:
                if self.jail is not None:
                    await self.jail.kill()
                    self.jail = None
                if self.toolchain.project and not error.out_of_memory:
                    raise  # what was built is gone with the jail
                if not error.out_of_memory and attempt + 1 < _TRIES:
                    continue
                await self.open()  # a host that cannot start a jail raises here: that is the fault
                return lost(out_of_memory=error.out_of_memory)
            self._account("run", report)
            if report.failure and not report.failure.startswith("exec: "):
                raise GraderFault(f"the jail could not set a run up: {report.failure}")
            return report
        raise AssertionError("every path above returns or raises")

    def _account(self, part: str, report: Report) -> None:
        self.spent.add(part, report.cpu_ns)


def lost(*, out_of_memory: bool) -> Report:
    """Stand in for the report of a run that took its jail with it."""
    return Report(
        status=_KILLED,
        stop=None,
        cpu_ns=0,
        wall_ns=0,
        peak_bytes=0,
        memory_kills=int(out_of_memory),
        process_refusals=0,
        stdout_truncated=False,
        stderr_truncated=False,
        result_truncated=False,
        failure="",
        sizes=(0, 0, 0),
        lost=True,
    )


def new_nonce() -> str:
    """Make the mark of one run's claims."""
    return secrets.token_hex(16)


def process_cpu_seconds(limits: RunLimits) -> int:
    """Per-process backup of the CPU limit, in whole seconds."""
    return int(limits.cpu_seconds) + 2


__all__ = ["CompileError", "Session", "new_nonce", "process_cpu_seconds", "sealed"]
