"""Judges a folder of cases and says what came of each: reward, verdicts, and the checks on the host."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.cases import host_checks
from sandbox.cases.format import BadCase, Case, load, read
from sandbox.errors import GraderFault
from sandbox.judge import Judge
from sandbox.judgement import Judgement
from sandbox.languages import toolchains
from sandbox.limits import resolve
from sandbox.reward_rule import score
from schemas import ExactGrader, ExternalGrader, FunctionGrader, FunctionTest, VerdictKind

__all__ = ["BadCase", "CaseResult", "judge_cases", "judge_folder", "load", "read"]


@dataclass(frozen=True)
class CaseResult:
    """One case judged."""

    id: str
    passed: bool
    reward: float | None
    """None: grader fault."""
    verdict: str | None
    verdicts: tuple[str, ...]
    host: dict[str, str]
    """By the check's words: pass, fail, not checked."""
    seconds: float
    expected: str
    fault: str = ""

    def as_json(self) -> dict[str, Any]:
        """Build the object of `headwater cases --json`."""
        return {
            "id": self.id,
            "passed": self.passed,
            "reward": self.reward,
            "verdict": self.verdict,
            "verdicts": list(self.verdicts),
            "host": self.host,
            "seconds": round(self.seconds, 3),
        }


async def judge_folder(folder: Path, concurrency: int = 2) -> list[CaseResult]:
    """Judge every case of a folder, in its order."""
    results = {result.id: result async for result in judge_cases(load(folder), concurrency)}
    return [results[case.id] for case in load(folder)]


async def judge_cases(
    cases: Sequence[Case], concurrency: int = 2, allow_unenforced: frozenset[str] = frozenset()
) -> AsyncIterator[CaseResult]:
    """Judge cases, `concurrency` at a time, each in a Judge of its own; yields as they end."""
    slots = asyncio.Semaphore(concurrency)

    async def one(case: Case) -> CaseResult:
        async with slots:
            return await judge_case(case, allow_unenforced)

    for task in asyncio.as_completed([one(case) for case in cases]):
        yield await task


async def judge_case(case: Case, allow_unenforced: frozenset[str] = frozenset()) -> CaseResult:
    """Judge one case, with a neighbour at its side and a job after it where the case asks about them."""
    started = time.monotonic()
    seen = host_checks.Seen()
    fault = ""
    wanted = case.expect.host
    assert not isinstance(case.grader, ExactGrader | ExternalGrader)
    language = toolchains.find(case.language)
    seen.wall_limit_seconds = resolve(case.grader.limits, language.limits).wall_seconds
    async with (
        Judge(
            2,
            ahead="python" if case.language == "python" else None,
            compile_cache=False,
            allow_unenforced=allow_unenforced,
        ) as judge,
        host_checks.Watch() as watch,
    ):
        site = judge.site
        neighbours = asyncio.create_task(_neighbours(judge)) if "other jobs unaffected" in wanted else None
        try:
            seen.judgement = await judge.judge(case.program, case.grader)
        except GraderFault as error:
            fault = str(error)
        seen.processes_left = host_checks.judged_processes(site) if neighbours is None else []
        seen.disk_bytes = host_checks.folder_bytes(site.staging)
        if neighbours is not None:
            neighbours.cancel()
            seen.neighbours_passed = await neighbours
            seen.processes_left = host_checks.judged_processes(site)
        seen.next_passed = await _control(judge)
        if host_checks.TWICE in wanted:
            seen.repeated.append(await _again(judge, case))
            seen.repeated += await asyncio.gather(_again(judge, case), _again(judge, case))
    seen.memory_growth_bytes = watch.highest - watch.start
    seen.files_left = host_checks.files_of_jails(site)
    seen.groups_left, seen.mounts_left = host_checks.groups_of(site), host_checks.mounts_of(site)
    if host_checks.LATER in wanted:
        await asyncio.sleep(host_checks.LATER_SECONDS)
        seen.files_left_later = host_checks.files_of_jails(site)
    return _result(case, seen, fault, time.monotonic() - started)


def _result(case: Case, seen: host_checks.Seen, fault: str, seconds: float) -> CaseResult:
    reward, verdict, verdicts = None, None, list[str]()
    if seen.judgement is not None:
        found = seen.judgement
        reward, _ = score(found.kind, found.tests, found.compile_log)
        verdict, verdicts = found.kind.value, [test.kind.value for test in found.tests]
    host = {
        text: "not checked" if text not in host_checks.CHECKS else "pass" if host_checks.CHECKS[text](seen) else "fail"
        for text in case.expect.host
    }
    fits = case.expect.reward_fits(reward) and case.expect.verdicts_fit(verdict, verdicts)
    allowed = " or ".join("/".join(sorted(one)) for one in case.expect.verdicts)
    return CaseResult(
        id=case.id,
        passed=fits and all(outcome == "pass" for outcome in host.values()),
        reward=reward,
        verdict=verdict,
        verdicts=tuple(verdicts),
        host=host,
        seconds=seconds,
        expected=f"reward {case.expect.lowest}..{case.expect.highest}, verdicts {allowed}",
        fault=fault,
    )


_NEIGHBOUR = "def total(n):\n    return sum(range(n + 1))\n"


async def _control(judge: Judge) -> bool:
    """Judge an honest program; whether it got its normal result."""
    tests = (FunctionTest.of([1000], 500500), FunctionTest.of([10], 0))
    result = await judge.judge(_NEIGHBOUR, FunctionGrader(entry_point="total", tests=tests))
    return [test.kind for test in result.tests] == [VerdictKind.ACCEPTED, VerdictKind.WRONG_ANSWER]


async def _neighbours(judge: Judge) -> bool:
    """Judge honest programs, one after another, until cancelled; whether all got their normal result."""
    passed = True
    try:
        while passed:
            passed = await _control(judge)
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        return passed
    return passed


async def _again(judge: Judge, case: Case) -> Judgement | None:
    try:
        return await judge.judge(case.program, case.grader)
    except GraderFault:
        return None
