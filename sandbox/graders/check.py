"""`check`: run the task's test program in a process apart from the answer's: one test."""

import json

from sandbox import claims, judgement
from sandbox.errors import GraderFault, TaskFault
from sandbox.graders.common import PlainTest, apart, crash, message, not_shown, require_compiled, together, verdict
from sandbox.graders.needs import unseen
from sandbox.graders.prelude import TYPING, given, imported, used
from sandbox.jail.jails import Report
from sandbox.jail.session import Session, new_nonce
from sandbox.limits import RunLimits, resolve
from schemas import CheckGrader, TestVerdict, VerdictKind


async def judge_check(session: Session, grader: CheckGrader) -> list[TestVerdict]:
    """Run the test program, in a process apart from the answer's: one test."""
    if session.language.run:
        raise GraderFault(f"check programs are for Python, not for {session.language.name}")
    limits = resolve(grader.limits, session.language.limits)
    if grader.in_process:
        return [_verdict(*await _run(session, grader, limits, alone=True), limits)]
    result = _verdict(*await _run(session, grader, limits, alone=False), limits)
    if result.kind is not VerdictKind.ACCEPTED and (used := unseen([grader.program])) is not None:
        other = _verdict(*await _run(session, grader, limits, alone=True), limits)
        if other.kind is VerdictKind.ACCEPTED:
            raise not_shown(used, result)
    return [result]


async def _run(
    session: Session, grader: CheckGrader, limits: RunLimits, *, alone: bool
) -> tuple[Report, claims.Claims]:
    nonce = new_nonce()
    names, prelude = given(grader.prelude, grader.entry_point, session.program)
    if grader.prelude is None:
        names = used({**TYPING, **imported(grader.program)}, session.program)
    about = json.dumps([grader.entry_point, grader.check_function])
    arrange = together if alone else apart
    processes = arrange(session, limits, "check", nonce, about, given=names, prelude=prelude)
    contents = {"program": session.program, "tests": grader.program.encode()}
    report = await session.run(processes, limits, contents)
    claimed = claims.parse(report.result, nonce)
    require_compiled(claimed, report, limits)
    return report, claimed


def _verdict(report: Report, claimed: claims.Claims, limits: RunLimits) -> TestVerdict:
    kind, detail = judgement.limit_reached(report, limits), ""
    if kind is not None:
        detail = judgement.LIMIT_WORDS[kind]
    elif "broken" in claimed.bodies:
        raise TaskFault(f"the task's test program does not compile: {message(claimed.bodies['broken'])}")
    elif not claimed.valid or not judgement.ended_well(report) or len(claimed.bodies) != 1:
        kind, detail = judgement.failed_kind(report), "no result: " + crash(report)
    else:
        ((name, body),) = claimed.bodies.items()
        failed = judgement.failed_kind(report)
        kind = {"passed": VerdictKind.ACCEPTED, "failed": VerdictKind.WRONG_ANSWER}.get(name, failed)
        detail = message(body)
    return verdict(PlainTest("check"), 1, kind, report, detail)
