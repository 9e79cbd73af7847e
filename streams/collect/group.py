"""One open group at collect: which members it has, and how it ends. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from schemas import (
    DropReason,
    Event,
    Generation,
    GroupDropped,
    Member,
    Purpose,
    Reward,
    Rollout,
    Trajectory,
    Unscorable,
)
from schemas.topics import EVALUATIONS, TRAJECTORIES
from wire.kafka.records import Outgoing

REPLAY_GRACE_SECONDS = 30.0
"""A group opened at or after its deadline (a replay after an outage) may still gather what is on the log."""
MAX_EARLY_DIGESTS = 8
"""Rewards kept for one sample index until its rollout says which digest counts. Each more is one more crash amid it."""


@dataclass(frozen=True, slots=True)
class Close:
    """A group that ends with a `Trajectory`: the shell reads `offsets` of `rollouts` and calls `assemble`."""

    blank: Trajectory
    """The trajectory without its members."""
    partition: int
    members: dict[int, tuple[int, Reward | None]]
    """Sample index -> offset of its rollout, and its reward (None: the rollout itself is unscorable)."""

    @property
    def offsets(self) -> list[int]:
        """Where the rollouts are, in `partition` of `rollouts`, rising."""
        return sorted(offset for offset, _ in self.members.values())


class Group:
    """Rewards and rollout offsets of one open group. Bounded by its number of samples."""

    def __init__(self, generation: Generation, opened_at: float) -> None:
        """`opened_at`: Unix seconds at which this worker read the generation."""
        asked = [message.content for message in generation.messages if message.role == "user"]
        self.blank = Trajectory(
            run_id=generation.run_id,
            purpose=generation.purpose,
            trace_id=generation.trace_id,
            group_id=generation.group_id,
            log_id=generation.log_id,
            admission_number=generation.admission_number,
            domain=generation.domain,
            prompt_id=generation.prompt_id,
            epoch=generation.epoch,
            num_samples=generation.num_samples,
            temperature=generation.sampling.temperature,
            members=(),
            admitted_at=generation.admitted_at,
            source=generation.source,
            prompt_text=asked[-1] if asked and generation.purpose == Purpose.EVALUATE else "",
        )
        self._min_samples = generation.min_samples
        self._deadline_at = max(
            generation.admitted_at + generation.deadline_seconds,
            opened_at + min(generation.deadline_seconds, REPLAY_GRACE_SECONDS),
        )
        self._rollouts: dict[int, tuple[int, str]] = {}
        """Sample index -> (offset, digest) of the rollout that counts."""
        self._unscorable: dict[int, Unscorable] = {}
        """Sample index -> why its rollout could not be sampled."""
        self._rewards: dict[int, dict[str, Reward]] = {}

    def is_over(self, now: float) -> bool:
        return now >= self._deadline_at

    def add_rollout(self, rollout: Rollout, offset: int) -> bool:
        """Take in a rollout; False: the index has one, and the first in log order counts."""
        index = rollout.sample_index
        if index in self._rollouts or not 0 <= index < self.blank.num_samples:
            return False
        self._rollouts[index] = (offset, rollout.digest)
        early = self._rewards.pop(index, {})
        if rollout.unscorable is not None:
            self._unscorable[index] = rollout.unscorable
        elif rollout.digest in early:
            self._rewards[index] = {rollout.digest: early[rollout.digest]}
        return True

    def add_reward(self, reward: Reward) -> bool:
        """Take in a reward; False: it is a second one, or of a rollout that does not count."""
        index, digest = reward.context.sample_index, reward.context.digest
        if index in self._unscorable or not 0 <= index < self.blank.num_samples:
            return False
        if index in self._rollouts and self._rollouts[index][1] != digest:
            return False
        rewards = self._rewards.setdefault(index, {})
        if digest in rewards or len(rewards) >= MAX_EARLY_DIGESTS:
            return False
        rewards[digest] = reward
        return True

    @property
    def is_complete(self) -> bool:
        """Whether every sample has its rollout, and every scorable one its reward."""
        return len(self._members()) == self.blank.num_samples

    def close(self, partition: int) -> Outgoing | Close:
        """The end of a complete group."""
        if len(self._scores()) < self._min_samples:
            reasons = {unscorable.drop_reason for unscorable in self._failures()}
            return self.drop(reasons.pop() if len(reasons) == 1 else DropReason.BELOW_MINIMUM, partition)
        return self._close_scored(partition)

    def close_at_deadline(self, partition: int) -> Outgoing | Close:
        """The end of a group whose time is over: what is there, if that is enough."""
        if len(self._scores()) < self._min_samples:
            return self.drop(DropReason.DEADLINE, partition)
        return self._close_scored(partition)

    def drop(self, reason: DropReason, partition: int) -> Outgoing:
        """The end without training."""
        return _drop(self.blank, partition, reason, self._detail(), self._scores())

    def _close_scored(self, partition: int) -> Outgoing | Close:
        scores = self._scores()
        if self.blank.purpose == Purpose.TRAIN and min(scores) == max(scores):
            return self.drop(DropReason.ZERO_SPREAD, partition)
        return Close(self.blank, partition, self._members())

    def _members(self) -> dict[int, tuple[int, Reward | None]]:
        """The members that are whole, by sample index."""
        members: dict[int, tuple[int, Reward | None]] = {}
        for index, (offset, digest) in sorted(self._rollouts.items()):
            reward = self._rewards.get(index, {}).get(digest)
            if reward is not None or index in self._unscorable:
                members[index] = (offset, reward)
        return members

    def _scores(self) -> list[float]:
        """Raw rewards of the scorable members, by sample index."""
        rewards = [reward.reward for _, reward in self._members().values() if reward is not None]
        return [score for score in rewards if score is not None]

    def _failures(self) -> list[Unscorable]:
        """Why members have no score: not sampled, or not graded."""
        ungraded = [reward.unscorable for _, reward in self._members().values() if reward and reward.unscorable]
        return [*self._unscorable.values(), *ungraded]

    def _detail(self) -> str:
        """How far it came, for people."""
        parts = [f"{len(self._scores())} of {self.blank.num_samples} members scored"]
        if failures := self._failures():
            parts.append("unscorable: " + ", ".join(sorted({str(unscorable) for unscorable in failures})))
        return "; ".join(parts)[:1000]


def assemble(close: Close, rollouts: Mapping[int, Rollout]) -> Outgoing:
    """The trajectory of a closed group. `rollouts`: by their offsets, all of `close.offsets`.

    Raises KeyError for a rollout that is not there and ValueError for one that is another's.
    """
    members: list[Member] = []
    for index, (offset, reward) in sorted(close.members.items()):
        rollout = rollouts[offset]
        same = reward is None or reward.context.digest == rollout.digest
        if (rollout.group_id, rollout.sample_index) != (close.blank.group_id, index) or not same:
            raise ValueError(f"the rollout at offset {offset} is not sample {index} of group {close.blank.group_id}")
        members.append(_member(rollout, reward))
    trajectory = msgspec.structs.replace(close.blank, members=tuple(members))
    return _outgoing(trajectory, trajectory.group_id, close.partition)


def give_up(close: Close, reason: DropReason, detail: str) -> Outgoing:
    """The end of a closed group that cannot be assembled: a rollout is gone, or the event would be too large."""
    rewards = [reward.reward for _, reward in close.members.values() if reward is not None]
    return _drop(close.blank, close.partition, reason, detail, [score for score in rewards if score is not None])


def _drop(blank: Trajectory, partition: int, reason: DropReason, detail: str, scores: list[float]) -> Outgoing:
    dropped = GroupDropped(
        run_id=blank.run_id,
        purpose=blank.purpose,
        trace_id=blank.trace_id,
        group_id=blank.group_id,
        log_id=blank.log_id,
        admission_number=blank.admission_number,
        domain=blank.domain,
        prompt_id=blank.prompt_id,
        epoch=blank.epoch,
        reason=reason,
        detail=detail,
        mean_reward=sum(scores) / len(scores) if scores else None,
        source=blank.source,
    )
    return _outgoing(dropped, blank.group_id, partition)


def _member(rollout: Rollout, reward: Reward | None) -> Member:
    score = reward.reward if reward is not None else None
    return Member(
        sample_index=rollout.sample_index,
        digest=rollout.digest,
        spans=rollout.spans if score is not None else (),
        finish_reason=rollout.finish_reason,
        reward=score,
        components=reward.components if reward is not None else {},
        unscorable=rollout.unscorable if reward is None else reward.unscorable,
        verdict=reward.verdict if reward is not None else None,
        text=rollout.text,
        feedback=reward.feedback if reward is not None else "",
    )


def _outgoing(event: Event, group_id: str, partition: int) -> Outgoing:
    if event.purpose == Purpose.TRAIN:
        return Outgoing(TRAJECTORIES.name, group_id, event, partition)
    return Outgoing(EVALUATIONS.name, group_id, event)
