"""The service: a bounded number of jobs at a time, each judged in a jail of its own."""

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from sandbox.errors import GraderFault, SandboxUnavailable
from sandbox.graders import judge_program
from sandbox.jail import controlgroups, host, launcher
from sandbox.jail.compile_cache import CompileCache
from sandbox.jail.jails import Jail, Site
from sandbox.jail.pool import Pool
from sandbox.jail.session import Session, Spent
from sandbox.judgement import Judgement
from sandbox.languages import toolchains
from sandbox.languages.toolchains import Toolchain
from schemas import (
    ExactGrader,
    ExternalGrader,
    FunctionGrader,
    FunctionTest,
    Grader,
    ProjectGrader,
    PythonGrader,
    StdioGrader,
    VerdictKind,
)


class Judge:
    """Judges programs. `async with Judge(...) as judge: await judge.judge(program, grader)`.

    concurrency: jobs in jails at a time; others wait, and their wait is no run time.
    jobs_per_jail: after so many jobs a jail is replaced (1: a new one for every job).
    compile_cache: folder in which compiled programs are kept for the next time; True: in the user's cache.
    ahead: the language whose jails are started before they are asked for; None: of no language.
    allow_unenforced: names of `host.ENFORCEABLE` that may be missing here. Without it a host that
    lacks one is refused.
    """

    def __init__(
        self,
        concurrency: int | None = None,
        *,
        jobs_per_jail: int = 200,
        ahead: str | None = "python",
        compile_cache: Path | bool = True,
        allow_unenforced: AbstractSet[str] = frozenset(),
    ) -> None:
        unknown = sorted(set(allow_unenforced) - set(host.ENFORCEABLE))
        if unknown:
            raise ValueError(f"allow_unenforced: {unknown[0]!r} is none of {', '.join(host.ENFORCEABLE)}")
        self.concurrency = concurrency or os.cpu_count() or 1
        self.jobs_per_jail = jobs_per_jail
        self.ahead = None if ahead is None else toolchains.find(ahead).name
        self.compile_cache = _compile_cache(compile_cache)
        self.allow_unenforced = frozenset(allow_unenforced)
        self._toolchains: dict[tuple[str, bool, tuple[str, ...]], asyncio.Task[Toolchain]] = {}
        self._slots = asyncio.Semaphore(self.concurrency)
        self._pool: Pool | None = None
        self._staging: Path | None = None

    async def __aenter__(self) -> Self:
        report = host.probe()
        if report.problem is not None or report.nsjail is None:
            raise SandboxUnavailable(report.problem or "no nsjail")
        refused = [name for name in report.not_enforced if name not in self.allow_unenforced]
        if refused:
            what = "; ".join(f"{name} ({host.ENFORCEABLE[name]})" for name in refused)
            raise SandboxUnavailable(
                f"this host cannot enforce: {what}. Run as root with control groups, or allow each by name"
            )
        hierarchy = controlgroups.probe()
        controlgroups.sweep(hierarchy)
        _sweep_folders()
        mark = f"{os.getpid()}-{controlgroups.start_time(os.getpid())}"
        self._staging = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{mark}-"))
        self._staging.chmod(0o755)
        site = Site(
            nsjail=Path(report.nsjail),
            hierarchy=hierarchy,
            staging=self._staging,
            launcher=await asyncio.to_thread(launcher.built),
            root=os.geteuid() == 0,
            token=secrets.randbelow(1 << 20),
        )
        ahead = None if self.ahead is None else await self._toolchain(self.ahead)
        self._pool = Pool(site, self.concurrency, self.jobs_per_jail, ahead)
        try:
            await self._pool.open()
            await self._test_itself()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def site(self) -> Site:
        """What its jails share; for whoever looks at the host from outside."""
        if self._pool is None:
            raise GraderFault("the judge is not running")
        return self._pool.site

    async def _close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None
        if self._staging is not None:
            shutil.rmtree(self._staging, ignore_errors=True)
            self._staging = None

    async def judge(self, program: str | bytes, grader: Grader) -> Judgement:
        """Judge one program. GraderFault if it could not be graded; cancelling kills what runs."""
        if isinstance(grader, ExternalGrader) or (isinstance(grader, ExactGrader) and grader.compare != "math"):
            raise GraderFault("exact comparisons and external graders need no sandbox")
        source = program.encode("utf-8", "surrogatepass") if isinstance(program, str) else program
        # those of a reward function are of its own jail
        of_answer = () if isinstance(grader, ExactGrader | ProjectGrader | PythonGrader) else grader.packages
        language = "python" if isinstance(grader, ExactGrader) else grader.language
        toolchain = await self._toolchain(language, project=isinstance(grader, ProjectGrader), packages=of_answer)
        async with self._slots:
            pool = self._pool
            if pool is None:
                raise GraderFault("the judge is not running")
            job = _Job(pool, self._toolchain, self.compile_cache)
            standard = grader.standard if isinstance(grader, StdioGrader) else None
            session = job.session(toolchain, source, standard)
            try:
                result = await judge_program(session, grader)
            except GraderFault:
                await job.discard()
                raise
            except SandboxUnavailable as error:
                await job.discard()
                raise GraderFault(str(error)) from error
            except BaseException:
                await job.discard()
                raise
            job.give_back()
            parts = {part: spent / 1e9 for part, spent in job.spent.parts.items()}
            return replace(result, jail_seconds=job.spent.seconds, parts=parts)

    async def _toolchain(self, name: str, *, project: bool = False, packages: tuple[str, ...] = ()) -> Toolchain:
        """Find a toolchain, once; those who come meanwhile wait for the same search. One that fails is sought again."""
        key = (name, project, tuple(sorted(set(packages))))
        task = self._toolchains.get(key)
        if task is None or (task.done() and task.exception() is not None):
            locate = asyncio.to_thread(toolchains.locate, name, project=project, wanted=key[2])
            task = self._toolchains[key] = asyncio.create_task(locate)
        return await asyncio.shield(task)

    async def _test_itself(self) -> None:
        """See that right is right, wrong is wrong, and that the confinement holds here."""
        probe = FunctionGrader(
            entry_point="probe",
            tests=(FunctionTest.of([], _CONTAINED), FunctionTest.of([], {**_CONTAINED, "uid": 0})),
        )
        result = await self.judge(_PROBE, probe)
        kinds = [test.kind for test in result.tests]
        if kinds != [VerdictKind.ACCEPTED, VerdictKind.WRONG_ANSWER]:
            detail = result.tests[0].detail if result.tests else result.compile_log
            raise SandboxUnavailable(f"the sandbox's own test fails on this host: {detail}")


def _compile_cache(wish: Path | bool) -> CompileCache | None:
    if isinstance(wish, Path):
        return CompileCache(wish)
    folder = launcher.cache_folder()
    return CompileCache(folder / "compiled") if wish and folder is not None else None


_FOLDER = "headwater-jails-"


def _sweep_folders() -> None:
    """Remove the (empty) folders of services that are gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*-*"):
        pid, start, _ = path.name.removeprefix(_FOLDER).split("-", 2)
        if pid.isdigit() and controlgroups.start_time(int(pid)) != start:
            shutil.rmtree(path, ignore_errors=True)


class _Job:
    """The jails of one job: the answer's, and those of programs of the task's."""

    def __init__(self, pool: Pool, locate: Callable[..., Awaitable[Toolchain]], cache: CompileCache | None) -> None:
        self.cache = cache
        self.spent = Spent()
        self.pool = pool
        self.locate = locate
        self.taken: list[Jail] = []

    def session(self, toolchain: Toolchain, program: bytes, standard: str | None = None) -> Session:
        """Prepare a session; it takes its jail when it opens."""

        async def take() -> Jail:
            jail = await self.pool.take(toolchain)
            self.taken.append(jail)
            return jail

        return Session(toolchain, program, take, self.another, self.spent, self.cache, standard)

    async def another(self, language: str, program: bytes, packages: tuple[str, ...] = ()) -> Session:
        """Open a session for a program of the task's."""
        session = self.session(await self.locate(language, packages=packages), program)
        await session.open()
        return session

    def give_back(self) -> None:
        """The job ended in order."""
        for jail in self.taken:
            self.pool.give_back(jail)

    async def discard(self) -> None:
        """The job did not: its jails may be in any state."""
        for jail in self.taken:
            await self.pool.discard(jail)


_CONTAINED = {
    "uid": 1000,
    "capabilities": [0, 0, 0, 0, 0],
    "no_new_privileges": 1,
    "seccomp": 2,
    "interfaces_up": 0,
    "writable": [],
    "others": [],
}
_PROBE = """
import os, socket

def probe():
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    writable = []
    for place in ("/", "/usr", "/usr/lib", "/headwater", "/proc", "/dev", "/build", "/etc"):
        try:
            open(place + "/probe", "w")
            writable.append(place)
        except OSError:
            pass
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
            route.connect(("127.0.0.1", 9))
        up = 1
    except OSError:
        up = 0
    return {
        "uid": os.getuid(),
        "capabilities": [int(status["Cap" + name], 16) for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")],
        "no_new_privileges": int(status["NoNewPrivs"]),
        "seccomp": int(status["Seccomp"]),
        "interfaces_up": up,
        "writable": writable,
        "others": [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()],
    }
"""
