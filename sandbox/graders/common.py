"""What all graders share: verdicts, and words for people."""

import json
import sys
from dataclasses import dataclass
from typing import Any

from sandbox import claims, judgement
from sandbox.errors import TaskFault
from sandbox.inside.protocol import BUILD, TESTER_UID, WORK
from sandbox.jail.jails import Process, Report
from sandbox.jail.session import CompileError, Session, process_cpu_seconds
from sandbox.limits import RunLimits
from sandbox.reward_rule import shorten
from schemas import TestVerdict, VerdictKind

MAX_SHOWN_CHARACTERS = 300


@dataclass(frozen=True)
class PlainTest:
    """A test that the task says nothing special about."""

    name: str
    hidden: bool = False
    required: bool = False
    weight: float = 1.0


def apart(
    session: Session,
    limits: RunLimits,
    kind: str,
    nonce: str,
    entry_point: str,
    *,
    module: str = "",
    support: bool = False,
    given: dict[str, str] | None = None,
    prelude: str = "",
    logs: bool = False,
) -> list[Process]:
    """Build the two processes of a run whose tests are inside: the tester, and the answer it asks."""
    seconds = process_cpu_seconds(limits)
    environment = session.environment
    tester = Process(
        kind=kind,
        uid=TESTER_UID,
        env=environment,
        passed=("tests", "link", "result"),
        nonce=nonce,
        entry_point=entry_point,
        cpu_seconds=seconds,
    )
    passed = ("program", "link:peer", "support") if support else ("program", "link:peer")
    answer = Process(
        kind="answer",
        env=environment,
        passed=passed,
        entry_point=module,
        cpu_seconds=seconds,
        given=given or {},
        prelude=prelude,
        logs=logs,
    )
    return [tester, answer]


def together(
    session: Session,
    limits: RunLimits,
    kind: str,
    nonce: str,
    entry_point: str,
    *,
    given: dict[str, str] | None = None,
    prelude: str = "",
) -> list[Process]:
    """Build the one process of a run whose tests are in the answer's own (`inside/alone.py`)."""
    return [
        Process(
            kind=f"{kind} alone",
            env=session.environment,
            passed=("program", "tests", "result"),
            nonce=nonce,
            entry_point=entry_point,
            cpu_seconds=process_cpu_seconds(limits),
            given=given or {},
            prelude=prelude,
        )
    ]


def not_shown(used: str, failed: TestVerdict) -> TaskFault:
    """Say that a test failed which the answer passes in its own process: the two of them cannot show what it uses."""
    return TaskFault(
        f"the tests use {used}, which they do not see of an answer in a process of its own: {failed.name} fails there, "
        f"and does not where they share one. `in_process` runs them so ({failed.detail[:300]})"
    )


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
        detail="" if test.hidden else shorten(sendable(detail) + _advice(detail), 3 * MAX_SHOWN_CHARACTERS),
    )


def _advice(detail: str) -> str:
    if "ModuleNotFoundError: No module named" in detail:
        return " (programs have Python's own modules, and those of the task's `packages`)"
    return ""


def crash(report: Report) -> str:
    """Say how the program ended badly, with the end of what it said."""
    if report.failure:
        return "the program could not be started"
    last = text(report.stderr).replace(f"{WORK}/", "").replace(f"{BUILD}/", "").replace(sys.base_prefix, "").strip()
    return (
        f"{judgement.ending(report)}\n{shorten(last, 2 * MAX_SHOWN_CHARACTERS)}" if last else judgement.ending(report)
    )


def text(data: bytes) -> str:
    """Show bytes as text."""
    return data.decode("utf-8", "replace")


def sendable(text: str) -> str:
    """Replace half characters, which a program may put into a text and which no encoder takes."""
    return text.encode("utf-8", "replace").decode()


def shown(text: str) -> str:
    """Show a text, quoted and cut."""
    return json.dumps(shorten(text, MAX_SHOWN_CHARACTERS), ensure_ascii=False)


def shown_raw(raw: bytes) -> str:
    """Show JSON as it is, cut."""
    return shorten(text(raw), MAX_SHOWN_CHARACTERS)


def shown_value(value: Any) -> str:
    """Show a value, cut."""
    try:
        return shorten(repr(value), MAX_SHOWN_CHARACTERS)
    except ValueError:
        return "a very large number"


def message(body: bytes) -> str:
    """Read the text of a claim."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return sendable(value) if isinstance(value, str) else ""


def require_compiled(claimed: claims.Claims, report: Report, limits: RunLimits) -> bool:
    """Raise CompileError where Python refused the source, or never got through it."""
    if claimed.first == "compiled":
        return True
    if claimed.first == "syntax":
        raise CompileError(message(claimed.first_body))
    starved = report.stop == "wall" and report.cpu_ns < limits.cpu_seconds * 5e8
    if report.lost or starved:  # that says nothing about the source
        return False
    limit = judgement.limit_reached(report, limits)
    why = judgement.LIMIT_WORDS[limit] if limit else judgement.ending(report)
    raise CompileError(f"Compiling did not end: {why}.")
