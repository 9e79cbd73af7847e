"""rollouts ─► dispatch ─► executions | verdicts: what is to be judged, and by whom.

sampled, and a grader that runs programs  ─► Execution of the program in the answer
sampled, and an `external` grader         ─► Execution of the whole answer, on the grader's own topic
sampled, and an `exact` grader            ─► Verdict at once: a pure comparison
not sampled                               ─► Verdict with the fault: a failure goes down the path
"""

import re
from collections.abc import Sequence

from sandbox.comparing.exact import is_right, wrong
from sandbox.extraction.extract import extract_program
from sandbox.extraction.patterns import PatternTimeout
from schemas import (
    CheckGrader,
    Context,
    ExactGrader,
    Execution,
    ExternalGrader,
    FunctionGrader,
    Grader,
    PolicyVersion,
    ProjectGrader,
    PythonGrader,
    Rollout,
    TestVerdict,
    UnittestGrader,
    Unscorable,
    UnscorableReason,
    Verdict,
    VerdictKind,
)
from schemas.ids import execution_id, rollout_digest
from schemas.topics import EXECUTIONS, ROLLOUTS, VERDICTS, executions_topic
from streams.grading.text_components import text_components
from wire.hop.hop import Hop
from wire.kafka.records import Outgoing, Record


class Dispatch(Hop[Rollout]):
    """The hop around `dispatch`."""

    name = "dispatch"
    topics = (ROLLOUTS,)
    concurrency = 16

    async def handle(self, event: Rollout, record: Record) -> Sequence[Outgoing]:
        return [dispatch(event)]

    def poisoned(self, event: Rollout, record: Record) -> Sequence[Outgoing]:
        return [unscorable_verdict(event, Unscorable(UnscorableReason.POISONED))]

    def exhausted(self, event: Rollout, record: Record, reason: str) -> Sequence[Outgoing]:
        return [unscorable_verdict(event, Unscorable(UnscorableReason.GRADER_FAULT, reason))]


def dispatch(rollout: Rollout) -> Outgoing:
    """The one event that follows from a rollout."""
    if rollout.unscorable is not None:
        return unscorable_verdict(rollout, rollout.unscorable)
    grader = rollout.task.grader
    if isinstance(grader, ExactGrader) and (grader.compare != "math" or is_right(rollout.text, grader)):
        return _compare(rollout, grader)
    try:
        program = program_of(rollout.text, grader)
    except (ValueError, PatternTimeout) as error:
        return unscorable_verdict(rollout, _fault(f"the task's pattern for the program: {error}"))
    context = context_of(rollout)
    execution = Execution(
        run_id=rollout.run_id,
        purpose=rollout.purpose,
        trace_id=rollout.trace_id,
        execution_id=execution_id(rollout.rollout_id, context.digest),
        context=context,
        program=program,
        grader=grader,
    )
    topic = executions_topic(grader.name) if isinstance(grader, ExternalGrader) else EXECUTIONS
    return Outgoing(topic.name, execution.execution_id, execution)


def program_of(text: str, grader: Grader) -> str:
    """The part of an answer that is judged: a program, a patch, or for graders of the user's all of it.

    ValueError for a pattern of the task's that is none.
    """
    if isinstance(grader, ExternalGrader | PythonGrader | ExactGrader):
        return text
    if isinstance(grader, ProjectGrader) and grader.target is None:
        return extract_program(text, "diff", rule=grader.extract)
    return extract_program(text, grader.language, names_of(grader), grader.extract)


def names_of(grader: Grader) -> Sequence[str]:
    """What the program must define, as far as the task says it."""
    if isinstance(grader, FunctionGrader | CheckGrader):
        return (grader.entry_point,)
    if isinstance(grader, UnittestGrader):
        module = re.escape(grader.solution.removesuffix(".py").replace("/", "."))
        lines = re.findall(rf"^\s*from\s+{module}\s+import\s+\(?([\w, \n]+)", "\n".join(grader.files.values()), re.M)
        return tuple(name for line in lines for name in re.findall(r"\w+", line))
    return ()


def unscorable_verdict(rollout: Rollout, unscorable: Unscorable) -> Outgoing:
    """The verdict on an answer that is not there or cannot be judged (invariant 7)."""
    return _verdict(rollout, unscorable=unscorable)


def context_of(rollout: Rollout) -> Context:
    """What follows the rollout to its reward. An answer that a user brought may come without a digest."""
    sampled = [span for span in rollout.spans if span.policy_version is not None]
    versions: list[PolicyVersion] = [span.policy_version for span in sampled if span.policy_version is not None]
    return Context(
        group_id=rollout.group_id,
        sample_index=rollout.sample_index,
        digest=rollout.digest or rollout_digest(rollout.spans, rollout.text),
        domain=rollout.task.domain,
        prompt_id=rollout.task.prompt_id,
        epoch=rollout.task.epoch,
        generation_offset=rollout.generation_offset,
        num_samples=rollout.num_samples,
        policy_version=min(versions, default=None),
        completion_tokens=sum(len(span.token_ids) // 4 for span in sampled),
        components=text_components(rollout.text) if rollout.unscorable is None else {},
        attempt=rollout.attempt,
    )


def _compare(rollout: Rollout, grader: ExactGrader) -> Outgoing:
    try:
        detail = wrong(rollout.text, grader)
    except ValueError as error:
        return unscorable_verdict(rollout, _fault(f"the grader's pattern is {error}"))
    kind = VerdictKind.ACCEPTED if detail is None else VerdictKind.WRONG_ANSWER
    return _verdict(rollout, kind=kind, detail=detail or "")


def _fault(words: str) -> Unscorable:
    return Unscorable(UnscorableReason.GRADER_FAULT, words)


def _verdict(
    rollout: Rollout, *, kind: VerdictKind | None = None, detail: str = "", unscorable: Unscorable | None = None
) -> Outgoing:
    context = context_of(rollout)
    verdict = Verdict(
        run_id=rollout.run_id,
        purpose=rollout.purpose,
        trace_id=rollout.trace_id,
        execution_id=execution_id(rollout.rollout_id, context.digest),
        context=context,
        kind=kind,
        tests=(TestVerdict(kind=kind, detail=detail),) if kind is not None else (),
        unscorable=unscorable,
    )
    return Outgoing(VERDICTS.name, rollout.group_id, verdict)
