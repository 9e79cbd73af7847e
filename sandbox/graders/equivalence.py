"""`exact` with `compare: math`: math-verify says whether two answers are the same, in a jail.

It parses what a model wrote with sympy, which may evaluate it, and may take for ever: so it runs as any program does.
"""

from sandbox import judgement
from sandbox.comparing.exact import said
from sandbox.errors import GraderFault
from sandbox.graders.common import PlainTest, crash, message, verdict
from sandbox.graders.python_reward import call_own
from sandbox.jail.session import Session
from sandbox.limits import RunLimits
from schemas import ExactGrader, TestVerdict, VerdictKind

PACKAGES = ("math-verify",)
LIMITS = RunLimits(cpu_seconds=10.0, wall_seconds=30.0)
PROGRAM = r"""
from math_verify import parse, verify

def read(text):
    # in a box all of it counts: of a plain text math-verify takes the last number, so that 2\sqrt{3} is 3 as well
    return parse("\\boxed{" + text + "}", parsing_timeout=None)

def same(text, answers):
    given = read(text)
    return any(verify(read(answer), given, timeout_seconds=None) for answer in answers)
"""


async def judge_equivalence(session: Session, grader: ExactGrader) -> list[TestVerdict]:
    """Ask whether the answer's last `\\boxed`, or what the pattern finds, is the task's answer."""
    text = said(session.program.decode("utf-8", "replace"), grader)
    answers = [grader.answer, *grader.or_answers]
    report, claimed = await call_own(session, PROGRAM, "call", "same", [text or "", answers], LIMITS, PACKAGES)
    kind, words = judgement.limit_reached(report, LIMITS), ""
    body = claimed.bodies.get("value")
    if kind is not None:
        words = f"comparing it {judgement.LIMIT_WORDS[kind]}"
    elif body == b"true" and text:
        kind = VerdictKind.ACCEPTED
    elif body in (b"true", b"false"):
        kind, words = VerdictKind.WRONG_ANSWER, f"this is not the answer: {(text or '')[:300]!r}"
    else:
        said_by_it = next((message(one) for one in claimed.bodies.values()), "") or crash(report)
        raise GraderFault(f"math-verify failed: {said_by_it}")
    return [verdict(PlainTest("equivalence"), 1, kind, report, words)]
