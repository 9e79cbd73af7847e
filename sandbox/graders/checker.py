"""A checker: a program of the task's that says whether an output is right. It runs in a jail of its own.

What an answer prints may make a checker fail; so a checker that crashes or runs into a limit has not
accepted the output. Only a checker that does not compile is a fault of the task.
"""

from dataclasses import dataclass

from sandbox import judgement
from sandbox.errors import GraderFault
from sandbox.graders.main_program import run_program
from sandbox.jail.session import CompileError, Session
from sandbox.limits import RunLimits, resolve
from schemas import Checker, StdioTest, VerdictKind

MAX_WORDS = 500


@dataclass(frozen=True)
class OpenChecker:
    """A checker, compiled."""

    session: Session
    limits: RunLimits

    async def judge(self, test: StdioTest, output: bytes) -> tuple[VerdictKind, str]:
        """Ask about one output."""
        arguments = {"input": test.stdin.encode(), "output": output, "expected": test.stdout.encode()}
        try:
            report, _ = await run_program(self.session, self.limits, b"", arguments)
        except CompileError as error:
            raise GraderFault(f"the task's checker does not compile: {error}") from error
        if judgement.limit_reached(report, self.limits) is None and judgement.ended_well(report):
            return VerdictKind.ACCEPTED, ""
        words = (report.stdout + report.stderr)[-MAX_WORDS:].decode("utf-8", "replace").strip()
        return VerdictKind.WRONG_ANSWER, f"the checker says no: {words}" if words else "the checker says no"


async def open_checker(session: Session, checker: Checker) -> OpenChecker:
    """Compile a checker in a jail of its own."""
    try:
        own = await session.another(checker.language, checker.program.encode())
    except CompileError as error:
        raise GraderFault(f"the task's checker does not compile: {error}") from error
    return OpenChecker(own, resolve(checker.limits, own.language.limits))
