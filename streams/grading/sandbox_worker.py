"""executions ─► sandbox worker ─► verdicts: programs run in jails, and what was seen there."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sandbox.errors import GraderFault, TaskFault
from schemas import Execution, Unscorable, UnscorableReason, Verdict
from schemas.topics import EXECUTIONS, VERDICTS
from wire.errors import Retryable
from wire.hop.hop import Hop
from wire.kafka.records import Outgoing, Record
from wire.metrics import Metrics

if TYPE_CHECKING:
    # what judges needs nsjail; what is decided about its answers does not
    from sandbox.judge import Judge
    from sandbox.judgement import Judgement


class SandboxWorker(Hop[Execution]):
    """The hop around a judge, which it starts and stops. As many jobs in flight as the judge has jails."""

    name = "sandbox"
    topics = (EXECUTIONS,)

    def __init__(self, judge: "Judge", metrics: Metrics) -> None:
        self.concurrency = judge.concurrency
        self._judge = judge
        self._metrics = metrics

    async def start(self) -> None:
        """Raises SandboxUnavailable on a host that cannot confine programs."""
        await self._judge.__aenter__()

    async def stop(self) -> None:
        await self._judge.__aexit__(None, None, None)

    async def handle(self, event: Execution, record: Record) -> Sequence[Outgoing]:
        """A failure of the sandbox is tried again, a fault of the task is not; what the program does is a verdict."""
        try:
            judgement = await self._judge.judge(event.program, event.grader)
        except TaskFault as error:
            return self._fault(event, Unscorable(UnscorableReason.GRADER_FAULT, str(error)))
        except GraderFault as error:
            raise Retryable(str(error)) from error
        self._metrics.verdicts.labels(judgement.kind.value).inc()
        self._metrics.jail_seconds.observe(judgement.jail_seconds)
        return [verdict_of(event, judgement)]

    def poisoned(self, event: Execution, record: Record) -> Sequence[Outgoing]:
        return self._fault(event, Unscorable(UnscorableReason.POISONED))

    def exhausted(self, event: Execution, record: Record, reason: str) -> Sequence[Outgoing]:
        return self._fault(event, Unscorable(UnscorableReason.GRADER_FAULT, reason))

    def _fault(self, event: Execution, unscorable: Unscorable) -> Sequence[Outgoing]:
        self._metrics.verdicts.labels("fault").inc()
        return [fault_of(event, unscorable)]


def verdict_of(execution: Execution, judgement: "Judgement") -> Outgoing:
    """What the judge saw."""
    return _outgoing(
        Verdict(
            run_id=execution.run_id,
            purpose=execution.purpose,
            trace_id=execution.trace_id,
            execution_id=execution.execution_id,
            context=execution.context,
            kind=judgement.kind,
            tests=judgement.tests,
            compile_log=judgement.compile_log,
            reward=judgement.reward,
            components=judgement.components,
            jail_seconds=judgement.jail_seconds,
        )
    )


def fault_of(execution: Execution, unscorable: Unscorable) -> Outgoing:
    """A failure to grade is not a grade (invariant 7): the rollout becomes unscorable."""
    return _outgoing(
        Verdict(
            run_id=execution.run_id,
            purpose=execution.purpose,
            trace_id=execution.trace_id,
            execution_id=execution.execution_id,
            context=execution.context,
            unscorable=unscorable,
        )
    )


def _outgoing(verdict: Verdict) -> Outgoing:
    return Outgoing(VERDICTS.name, verdict.context.group_id, verdict)
