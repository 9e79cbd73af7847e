"""From a grader to verdicts: what to run for each test, and what its report means. One function a grader."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sandbox import claims, judgement
from sandbox.compare import same_output, same_value
from sandbox.errors import GraderFault
from sandbox.inside.values import decode
from sandbox.jails import TESTER, Process, Report
from sandbox.judgement import Judgement
from sandbox.limits import RunLimits, resolve
from sandbox.scoring import shorten
from sandbox.session import CompileError, Session, new_nonce, process_cpu_seconds
from schemas import CheckGrader, FunctionGrader, FunctionTest, Grader, StdioGrader, TestVerdict, VerdictKind

MAX_SHOWN_CHARACTERS = 300
MIN_RESULT_BYTES = 64 * 1024
RESULT_BYTES_PER_EXPECTED = 16
"""A result much longer than what is expected cannot equal it, in any encoding."""


async def judge_program(session: Session, grader: Grader) -> Judgement:
    """Judge one program. Raises GraderFault only."""
    run = _GRADERS.get(type(grader))
    if run is None:
        raise GraderFault(f"the sandbox does not judge {type(grader).__name__}")
    try:
        await session.open()
        tests = await run(session, grader)
    except CompileError as error:
        return Judgement(VerdictKind.COMPILE_ERROR, (), str(error), session.cpu_ns / 1e9)
    return Judgement(judgement.worst(test.kind for test in tests), tuple(tests), "", session.cpu_ns / 1e9)


# stdio


async def judge_stdio(session: Session, grader: StdioGrader) -> list[TestVerdict]:
    """Run the program once a test and compare what it prints."""
    limits = resolve(grader.limits, session.language.limits)
    verdicts: list[TestVerdict] = []
    for number, test in enumerate(grader.tests, 1):
        report, compiled = await run_program(session, limits, test.stdin.encode())
        kind, detail = judgement.limit_reached(report, limits), ""
        if kind is not None:
            detail = judgement.LIMIT_WORDS[kind]
        elif not judgement.ended_well(report):
            kind, detail = judgement.failed_kind(report), _crash(report)
        elif not compiled:
            kind, detail = VerdictKind.RUNTIME_ERROR, "the program did not start"
        elif same_output(report.stdout, test.stdout):
            kind = VerdictKind.ACCEPTED
        else:
            kind = VerdictKind.WRONG_ANSWER
            detail = f"input {_shown(test.stdin)}, expected {_shown(test.stdout)}, got {_shown(_text(report.stdout))}"
        verdicts.append(verdict(test, number, kind, report, detail))
    return verdicts


async def run_program(session: Session, limits: RunLimits, stdin: bytes) -> tuple[Report, bool]:
    """Run the answer as the main program: (report, whether it got past its syntax)."""
    language = session.language
    if language.run:
        process = Process(
            kind="exec",
            argv=language.run,
            env=session.environment,
            stdin="stdin",
            cpu_seconds=process_cpu_seconds(limits),
        )
        return await session.run([process], limits, {"stdin": stdin}), True
    nonce = new_nonce()
    process = Process(
        kind="main",
        env=session.environment,
        stdin="stdin",
        passed=("program", "result"),
        nonce=nonce,
        cpu_seconds=process_cpu_seconds(limits),
    )
    report = await session.run([process], limits, {"stdin": stdin, "program": session.program})
    return report, require_compiled(claims.parse(report.result, nonce), report, limits)


def require_compiled(claimed: claims.Claims, report: Report, limits: RunLimits) -> bool:
    """Raise CompileError where Python refused the source, or never got through it."""
    if claimed.first == "compiled":
        return True
    if claimed.first == "syntax":
        raise CompileError(_message(claimed.first_body))
    limit = judgement.limit_reached(report, limits)
    why = judgement.LIMIT_WORDS[limit] if limit else judgement.ending(report)
    raise CompileError(f"Compiling did not end: {why}.")


# function


async def judge_function(session: Session, grader: FunctionGrader) -> list[TestVerdict]:
    """Call the entry point with each test's arguments and compare what it returns."""
    if session.language.run:
        raise GraderFault(f"function tests are for Python, not for {session.language.name}")
    limits = resolve(grader.limits, session.language.limits)
    return [await _call(session, grader, test, number, limits) for number, test in enumerate(grader.tests, 1)]


async def _call(
    session: Session, grader: FunctionGrader, test: FunctionTest, number: int, limits: RunLimits
) -> TestVerdict:
    nonce = new_nonce()
    raw = bytes(test.expected)
    result_bytes = MIN_RESULT_BYTES + RESULT_BYTES_PER_EXPECTED * len(raw)
    process = Process(
        kind="call",
        env=session.environment,
        passed=("program", "payload", "result"),
        nonce=nonce,
        entry_point=grader.entry_point,
        result_bytes=result_bytes,
        cpu_seconds=process_cpu_seconds(limits),
    )
    contents = {"program": session.program, "payload": bytes(test.args)}
    report = await session.run([process], limits, contents, result_bytes=result_bytes + 4096)
    claimed = claims.parse(report.result, nonce)
    require_compiled(claimed, report, limits)
    limit = judgement.limit_reached(report, limits)
    if limit is not None:
        return verdict(test, number, limit, report, judgement.LIMIT_WORDS[limit])
    if not claimed.valid or not judgement.ended_well(report) or not claimed.bodies:
        return verdict(test, number, judgement.failed_kind(report), report, "no result: " + _crash(report))
    ((name, body),) = list(claimed.bodies.items())[:1]
    if name != "value" or len(claimed.bodies) != 1:
        return verdict(test, number, judgement.failed_kind(report), report, _message(body))
    try:
        value = decode(body)
        expected = json.loads(raw)
    except ValueError:
        return verdict(test, number, VerdictKind.RUNTIME_ERROR, report, "no result: what it handed over is not a value")
    kind = VerdictKind.ACCEPTED if same_value(value, expected) else VerdictKind.WRONG_ANSWER
    call = f"{grader.entry_point}({_shown_raw(bytes(test.args)[1:-1])})"
    detail = f"{call} returned {_shown_value(value)}, expected {_shown_value(expected)}"
    return verdict(test, number, kind, report, "" if kind is VerdictKind.ACCEPTED else detail)


# check


@dataclass(frozen=True)
class _OneTest:
    """A check is one visible test."""

    name: str = "check"
    hidden: bool = False
    required: bool = False
    weight: float = 1.0


async def judge_check(session: Session, grader: CheckGrader) -> list[TestVerdict]:
    """Run the test program, in a process apart from the answer's: one test."""
    if session.language.run:
        raise GraderFault(f"check programs are for Python, not for {session.language.name}")
    limits = resolve(grader.limits, session.language.limits)
    nonce = new_nonce()
    shared: dict[str, Any] = {"env": session.environment, "cpu_seconds": process_cpu_seconds(limits)}
    tester = Process(
        kind="check",
        uid=TESTER,
        passed=("tests", "link", "result"),
        nonce=nonce,
        entry_point=json.dumps([grader.entry_point, grader.check_function]),
        **shared,
    )
    answer = Process(kind="answer", passed=("program", "link:peer"), **shared)
    contents = {"program": session.program, "tests": grader.program.encode()}
    report = await session.run([tester, answer], limits, contents)
    claimed = claims.parse(report.result, nonce)
    require_compiled(claimed, report, limits)
    kind, detail = judgement.limit_reached(report, limits), ""
    if kind is not None:
        detail = judgement.LIMIT_WORDS[kind]
    elif "broken" in claimed.bodies:
        raise GraderFault(f"the task's test program does not compile: {_message(claimed.bodies['broken'])}")
    elif not claimed.valid or not judgement.ended_well(report) or len(claimed.bodies) != 1:
        kind, detail = judgement.failed_kind(report), "no result: " + _crash(report)
    else:
        ((name, body),) = claimed.bodies.items()
        failed = judgement.failed_kind(report)
        kind = {"passed": VerdictKind.ACCEPTED, "failed": VerdictKind.WRONG_ANSWER}.get(name, failed)
        detail = _message(body)
    return [verdict(_OneTest(), 1, kind, report, detail)]


# what all share


def verdict(test: Any, number: int, kind: VerdictKind, report: Report, detail: str) -> TestVerdict:
    """Build the verdict of one test; a hidden one tells nothing about itself."""
    exited = report.stop is None and report.status & 0x7F == 0
    return TestVerdict(
        kind=kind,
        name=test.name or f"test {number}",
        hidden=test.hidden,
        required=test.required,
        weight=test.weight,
        cpu_seconds=report.cpu_ns / 1e9,
        wall_seconds=report.wall_ns / 1e9,
        peak_memory_bytes=report.peak_bytes,
        output_bytes=len(report.stdout) + len(report.stderr),
        exit_status=report.status >> 8 if exited else None,
        signal=None if exited or report.stop is not None else report.status & 0x7F,
        stdout_truncated=report.stdout_truncated,
        stderr_truncated=report.stderr_truncated,
        detail="" if test.hidden else shorten(detail, 3 * MAX_SHOWN_CHARACTERS),
    )


def _crash(report: Report) -> str:
    if report.failure:
        return "the program could not be started"
    last = _text(report.stderr).replace("/tmp/work/", "").replace("/build/", "").strip()
    return (
        f"{judgement.ending(report)}\n{shorten(last, 2 * MAX_SHOWN_CHARACTERS)}" if last else judgement.ending(report)
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _shown(text: str) -> str:
    return json.dumps(shorten(text, MAX_SHOWN_CHARACTERS), ensure_ascii=False)


def _shown_raw(raw: bytes) -> str:
    return shorten(_text(raw), MAX_SHOWN_CHARACTERS)


def _shown_value(value: Any) -> str:
    try:
        return shorten(repr(value), MAX_SHOWN_CHARACTERS)
    except ValueError:
        return "a very large number"


def _message(body: bytes) -> str:
    try:
        text = json.loads(body)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""


_GRADERS: dict[type, Callable[[Session, Any], Awaitable[list[TestVerdict]]]] = {
    StdioGrader: judge_stdio,
    FunctionGrader: judge_function,
    CheckGrader: judge_check,
}
