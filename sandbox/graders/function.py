"""`function`: call the entry point with each test's arguments and compare what it returns."""

import json

from sandbox import claims, judgement
from sandbox.comparing.values import same_value, untrusted
from sandbox.errors import GraderFault
from sandbox.graders.common import crash, message, require_compiled, shown_raw, shown_value, verdict
from sandbox.inside.values import decode
from sandbox.jail.jails import Process
from sandbox.jail.session import Session, new_nonce, process_cpu_seconds
from sandbox.limits import RunLimits, resolve
from schemas import FunctionGrader, FunctionTest, TestVerdict, VerdictKind

MIN_RESULT_BYTES = 64 * 1024
RESULT_BYTES_PER_EXPECTED = 16
"""A result much longer than what is expected cannot equal it, in any encoding."""


def whole(digits: str) -> int:
    """Read a whole number of any length (Python itself refuses more than 4300 digits, for outside input)."""
    value = 0
    step = 4000
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    for start in range(0, len(digits), step):
        part = digits[start : start + step]
        value = value * 10 ** len(part) + int(part)
    return sign * value


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
        return verdict(test, number, judgement.failed_kind(report), report, "no result: " + crash(report))
    ((name, body),) = list(claimed.bodies.items())[:1]
    if name != "value" or len(claimed.bodies) != 1:
        return verdict(test, number, judgement.failed_kind(report), report, message(body))
    try:
        value = decode(body, untrusted)
        expected = json.loads(raw, parse_int=whole)
    except ValueError:
        return verdict(test, number, VerdictKind.RUNTIME_ERROR, report, "no result: what it handed over is not a value")
    kind = VerdictKind.ACCEPTED if same_value(value, expected) else VerdictKind.WRONG_ANSWER
    call = f"{grader.entry_point}({shown_raw(bytes(test.args)[1:-1])})"
    detail = f"{call} returned {shown_value(value)}, expected {shown_value(expected)}"
    return verdict(test, number, kind, report, "" if kind is VerdictKind.ACCEPTED else detail)
