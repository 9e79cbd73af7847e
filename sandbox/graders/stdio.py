"""`stdio`: run the program once a test and compare what it prints."""

from sandbox import judgement
from sandbox.comparing.output import same_output
from sandbox.graders.checker import open_checker
from sandbox.graders.common import crash, shown, text, verdict
from sandbox.graders.main_program import run_program
from sandbox.jail.session import Session
from sandbox.limits import resolve
from schemas import StdioGrader, TestVerdict, VerdictKind


async def judge_stdio(session: Session, grader: StdioGrader) -> list[TestVerdict]:
    """Run the program once a test and compare what it prints."""
    limits = resolve(grader.limits, session.language.limits)
    checker = await open_checker(session, grader.checker) if grader.checker else None
    verdicts: list[TestVerdict] = []
    for number, test in enumerate(grader.tests, 1):
        report, compiled = await run_program(session, limits, test.stdin.encode(), int_digits=grader.int_digits)
        kind, detail = judgement.limit_reached(report, limits), ""
        if kind is not None:
            detail = judgement.LIMIT_WORDS[kind]
        elif not judgement.ended_well(report):
            kind, detail = judgement.failed_kind(report), crash(report)
        elif not compiled:
            kind, detail = VerdictKind.RUNTIME_ERROR, "the program did not start"
        elif checker is not None:
            kind, detail = await checker.judge(test, report.stdout)
        elif same_output(report.stdout, test.stdout):
            kind = VerdictKind.ACCEPTED
        else:
            kind = VerdictKind.WRONG_ANSWER
            detail = f"input {shown(test.stdin)}, expected {shown(test.stdout)}, got {shown(text(report.stdout))}"
        verdicts.append(verdict(test, number, kind, report, detail))
    return verdicts
