"""`function`: call the entry point with each test's arguments and compare what it returns."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, cast

from sandbox import claims, judgement
from sandbox.comparing.values import Comparison, Pairs, untrusted, written
from sandbox.errors import GraderFault, TaskFault
from sandbox.graders.checker import OpenChecker, open_checker
from sandbox.graders.common import crash, message, require_compiled, shown_raw, shown_value, verdict
from sandbox.graders.prelude import given
from sandbox.inside.values import build, decode, unknown
from sandbox.jail.jails import Process, Report
from sandbox.jail.session import Session, new_nonce, process_cpu_seconds
from sandbox.limits import RunLimits, resolve
from schemas import FunctionGrader, FunctionTest, StdioTest, TestVerdict, VerdictKind

MIN_RESULT_BYTES = 64 * 1024
RESULT_BYTES_PER_EXPECTED = 16
"""A result much longer than what is expected cannot equal it, in any encoding."""
MAX_FRACTION_BITS = 1 << 15


@dataclass(frozen=True)
class Call:
    """What came of one call: a value, or (`kind`, `detail`) why there is none."""

    report: Report
    kind: VerdictKind | None = None
    detail: str = ""
    value: Any = None
    in_place: bool = False
    """None was returned; `value` is what the first argument became."""


async def judge_function(session: Session, grader: FunctionGrader) -> list[TestVerdict]:
    """Call the entry point with each test's arguments and compare what it returns."""
    if session.language.run:
        raise GraderFault(f"function tests are for Python, not for {session.language.name}")
    limits = resolve(grader.limits, session.language.limits)
    for number, test in enumerate(grader.tests, 1):
        if not bytes(test.args).lstrip().startswith(b"["):
            raise TaskFault(f"`args` of test {number} is no JSON list: {shown_raw(bytes(test.args))}")
        if grader.compare == "one_of" and not isinstance(read_json(bytes(test.expected)), list):
            raise TaskFault(f"`expected` of test {number} is no list of right values, as `one_of` wants")
    checker = await open_checker(session, grader.checker) if grader.checker else None
    job = _Job(grader, Comparison(grader.compare, grader.tolerance), checker)
    calls = [await _call(session, grader, test, limits) for test in grader.tests]
    job.works_in_place = any(map(job.changed_as_expected, calls, grader.tests))
    verdicts: list[TestVerdict] = []
    for number, (test, call) in enumerate(zip(grader.tests, calls, strict=True), 1):
        kind, detail = await job.judged(call, test)
        if kind is not VerdictKind.ACCEPTED and grader.int_keys is None and has_int_keys(bytes(test.args)):
            # JSON has no other keys than text: who wrote the test may have meant either
            again = await _call(session, grader, test, limits, int_keys=True)
            if (await job.judged(again, test))[0] is VerdictKind.ACCEPTED:
                call, kind, detail = again, VerdictKind.ACCEPTED, ""
        verdicts.append(verdict(test, number, kind, call.report, detail))
    return verdicts


@dataclass
class _Job:
    """What is the same for all tests of a job."""

    grader: FunctionGrader
    comparison: Comparison
    checker: OpenChecker | None
    works_in_place: bool = False
    """Some test's first argument became what was expected, and was not so before."""

    def changed_as_expected(self, call: Call, test: FunctionTest) -> bool:
        if not call.in_place:
            return False
        before, *_ = read_json(bytes(test.args))
        expected = read_json(bytes(test.expected))
        return self.comparison.accepts(call.value, expected) and not self.comparison.accepts(call.value, before)

    async def judged(self, call: Call, test: FunctionTest) -> tuple[VerdictKind, str]:
        """Say what a call is worth, with words where it is not accepted."""
        if call.kind is not None:
            return call.kind, call.detail
        value = call.value if not call.in_place or self.works_in_place else None
        expected = read_json(bytes(test.expected))
        if self.checker is not None:
            about = StdioTest(stdin=bytes(test.args).decode(), stdout=bytes(test.expected).decode())
            return await self.checker.judge(about, json.dumps(as_json(value)).encode())
        if self.comparison.accepts(value, expected):
            return VerdictKind.ACCEPTED, ""
        words = f"{self.grader.entry_point}({shown_raw(bytes(test.args).strip()[1:-1])})"
        return VerdictKind.WRONG_ANSWER, f"{words} returned {shown_value(value)}, expected {shown_value(expected)}"


async def _call(
    session: Session, grader: FunctionGrader, test: FunctionTest, limits: RunLimits, *, int_keys: bool = False
) -> Call:
    nonce = new_nonce()
    names, prelude = given(grader.prelude, grader.entry_point, session.program)
    result_bytes = MIN_RESULT_BYTES + RESULT_BYTES_PER_EXPECTED * len(bytes(test.expected))
    process = Process(
        kind="call",
        env=session.environment,
        passed=("program", "payload", "result"),
        nonce=nonce,
        entry_point=grader.entry_point,
        result_bytes=result_bytes,
        cpu_seconds=process_cpu_seconds(limits),
        given=names,
        prelude=prelude,
        int_digits=grader.int_digits,
        int_keys=int_keys or bool(grader.int_keys),
        returns=grader.returns or "",
    )
    contents = {"program": session.program, "payload": bytes(test.args)}
    report = await session.run([process], limits, contents, result_bytes=result_bytes + 4096)
    claimed = claims.parse(report.result, nonce)
    require_compiled(claimed, report, limits)
    limit = judgement.limit_reached(report, limits)
    if limit is not None:
        return Call(report, limit, judgement.LIMIT_WORDS[limit])
    if not claimed.valid or not judgement.ended_well(report) or not claimed.bodies:
        return Call(report, judgement.failed_kind(report), "no result: " + crash(report))
    name, body = next(iter(claimed.bodies.items()))
    if name == "broken":
        raise TaskFault(f"the task's prelude cannot be run: {message(body)}")
    if name not in ("value", "argument") or len(claimed.bodies) != 1:
        return Call(report, judgement.failed_kind(report), message(body))
    try:
        value = decode(body, untrusted, number)
    except ValueError:
        return Call(report, VerdictKind.RUNTIME_ERROR, "no result: what it handed over is not a value")
    return Call(report, value=value, in_place=name == "argument")


def number(tag: str, body: Any) -> Any:
    """Read the numbers that JSON has none of (`inside/calls.py`); ValueError for anything else."""
    if tag == "n" and isinstance(body, str) and len(body) <= MIN_RESULT_BYTES:
        try:
            return Decimal(body)
        except InvalidOperation:
            raise ValueError("no decimal number") from None
    if tag == "q" and isinstance(body, list) and len(cast(list[Any], body)) == 2:
        above, below = (build(part, unknown) for part in cast(list[Any], body))
        if all(type(part) is int and part.bit_length() <= MAX_FRACTION_BITS for part in (above, below)) and below > 0:
            return Fraction(above, below)
        raise ValueError("no fraction")
    return unknown(tag, body)


def has_int_keys(args: bytes) -> bool:
    """Whether some object in the arguments has whole numbers for keys."""
    return re.search(rb'[{,]\s*"-?\d+"\s*:', args) is not None


def read_json(raw: bytes) -> Any:
    """Read JSON of a task, with whole numbers of any length."""
    return json.loads(raw, parse_int=whole)


def whole(digits: str) -> int:
    """Read a whole number of any length (Python itself refuses more than 4300 digits, for outside input)."""
    value = 0
    step = 4000
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    for start in range(0, len(digits), step):
        part = digits[start : start + step]
        value = value * 10 ** len(part) + int(part)
    return sign * value


def as_json(value: Any) -> Any:
    """What JSON can write of a value, for a checker."""
    if isinstance(value, Pairs):
        return {name: as_json(item) for key, item in value for name in written(key)[:1]}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in cast(list[Any], value)]
    if isinstance(value, Decimal | Fraction):
        return float(value)
    return value.hex() if isinstance(value, bytes) else value
