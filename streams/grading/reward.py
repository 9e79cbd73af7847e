"""verdicts ─► reward ─► rewards: from what a grader saw to a number, or to why there is none."""

import math
from collections.abc import Sequence

from sandbox.reward_rule import score
from schemas import Reward, Unscorable, UnscorableReason, Verdict, VerdictKind
from schemas.topics import REWARDS, VERDICTS
from wire.hop.hop import Hop
from wire.kafka.records import Outgoing, Record
from wire.metrics import Metrics


class RewardHop(Hop[Verdict]):
    """The hop around `reward_of`."""

    name = "reward"
    topics = (VERDICTS,)
    concurrency = 16

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def handle(self, event: Verdict, record: Record) -> Sequence[Outgoing]:
        return self._counted(reward_of(event))

    def poisoned(self, event: Verdict, record: Record) -> Sequence[Outgoing]:
        return self._counted(unscorable_reward(event, Unscorable(UnscorableReason.POISONED)))

    def exhausted(self, event: Verdict, record: Record, reason: str) -> Sequence[Outgoing]:
        return self._counted(_not_graded(event, reason))

    def _counted(self, reward: Reward) -> Sequence[Outgoing]:
        scorable = "yes" if reward.reward is not None else "no"
        self._metrics.rewards.labels(reward.context.domain, scorable).inc()
        return [Outgoing(REWARDS.name, reward.context.group_id, reward)]


def reward_of(verdict: Verdict) -> Reward:
    """A fault is unscorable; a grader's own reward is kept; else the rule of the design's §4."""
    if verdict.unscorable is not None:
        return unscorable_reward(verdict, verdict.unscorable)
    if verdict.reward is not None:
        if not math.isfinite(verdict.reward):
            return _not_graded(verdict, f"the grader's reward is {verdict.reward}")
        return _reward(verdict, verdict.reward, verdict.feedback)
    if verdict.kind is None or not (verdict.tests or verdict.kind == VerdictKind.COMPILE_ERROR):
        return _not_graded(verdict, "the verdict has neither tests, a reward nor a fault")
    reward, feedback = score(verdict.kind, verdict.tests, verdict.compile_log)
    return _reward(verdict, reward, verdict.feedback or feedback)


def unscorable_reward(verdict: Verdict, unscorable: Unscorable) -> Reward:
    """No reward, and why: out of every baseline (invariant 7)."""
    return _reward(verdict, None, "", unscorable)


def _not_graded(verdict: Verdict, words: str) -> Reward:
    return unscorable_reward(verdict, Unscorable(UnscorableReason.GRADER_FAULT, words))


def _reward(verdict: Verdict, reward: float | None, feedback: str, unscorable: Unscorable | None = None) -> Reward:
    return Reward(
        run_id=verdict.run_id,
        purpose=verdict.purpose,
        trace_id=verdict.trace_id,
        context=verdict.context,
        reward=reward,
        components={**verdict.context.components, **verdict.components},
        feedback=feedback,
        verdict=verdict.kind,
        passed=sum(test.kind == VerdictKind.ACCEPTED for test in verdict.tests),
        tests=len(verdict.tests),
        unscorable=unscorable,
    )
