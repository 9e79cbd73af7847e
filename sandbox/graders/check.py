"""`check`: run the task's test program in a process apart from the answer's: one test."""

import json

from sandbox import claims, judgement
from sandbox.errors import GraderFault, TaskFault
from sandbox.graders.common import PlainTest, apart, crash, message, require_compiled, verdict
from sandbox.graders.prelude import TYPING, given, imported, used
from sandbox.jail.session import Session, new_nonce
from sandbox.limits import resolve
from schemas import CheckGrader, TestVerdict, VerdictKind


async def judge_check(session: Session, grader: CheckGrader) -> list[TestVerdict]:
    """Run the test program, in a process apart from the answer's: one test."""
    if session.language.run:
        raise GraderFault(f"check programs are for Python, not for {session.language.name}")
    limits = resolve(grader.limits, session.language.limits)
    nonce = new_nonce()
    names, prelude = given(grader.prelude, grader.entry_point, session.program)
    if grader.prelude is None:
        names = used({**TYPING, **imported(grader.program)}, session.program)
    about = json.dumps([grader.entry_point, grader.check_function])
    processes = apart(session, limits, "check", nonce, about, given=names, prelude=prelude)
    contents = {"program": session.program, "tests": grader.program.encode()}
    report = await session.run(processes, limits, contents)
    claimed = claims.parse(report.result, nonce)
    require_compiled(claimed, report, limits)
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
    return [verdict(PlainTest("check"), 1, kind, report, detail)]
