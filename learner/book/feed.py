"""From the events of `trajectories` to batches: which group is new, which is stale, which batch is next.

Pure: no clock, no I/O. The life of a group here:

    offered ── known number ──────────────────────────► dropped and counted as a duplicate
       ├────── GroupDropped ──────────────────────────► ended with its reason
       └────── Trajectory ─► held ─┬─ older than η ───► ended `stale`
                                   ├─ the run closes ─► ended `run_ended`
                                   └─ batch ─► step ──► ended `trained` or `step_skipped`

Every end is returned once, as an `Ended` in the order of the ledger; the shell appends it to the ledger
before it saves the position or publishes progress.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from learner.book.position import NumberSet, Position
from schemas import Drained, DrainReason, Event, GroupDropped, Outcome, SourcePosition, Trajectory


class Ended(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the ledger: how a group ended, and in which life at which version."""

    log_id: str
    admission_number: int
    group_id: str
    domain: str
    incarnation: int
    version: int
    """Trained groups: the version that the step made."""
    outcome: Outcome
    source: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The groups of one update, in the order consumed; `ages` are updates since each group's oldest token."""

    groups: tuple[Trajectory, ...]
    ages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """What `take_batch` decided: a batch, if there is one, and the groups it ended as stale on the way."""

    batch: Batch | None
    ended: list[Ended]


@dataclass(frozen=True, slots=True)
class _Held:
    trajectory: Trajectory
    partition: int
    offset: int


class Feed:
    """Holds what has come and is not yet consumed; keeps `position` fit to be saved after every call.

    Memory: the shell stops reading while `full`, so at most (η+1)·B groups and one fetch are held.
    """

    def __init__(self, position: Position, *, batch_groups: int, max_staleness: int) -> None:
        """`batch_groups` is B, `max_staleness` η in updates. `position.begin` has been called."""
        self.position = position
        self.closing = False
        self._batch_groups = batch_groups
        self._max_staleness = max_staleness
        self._held: dict[int, _Held] = {}
        self._next_offsets = dict(position.offsets)
        self._training: Batch | None = None

    @property
    def held(self) -> int:
        """Groups held: arrived and not ended, those of the batch in training included."""
        return len(self._held)

    @property
    def full(self) -> bool:
        """Whether to read no further for now. It is then always possible to take a batch or to end stale groups."""
        return len(self._held) >= (self._max_staleness + 1) * self._batch_groups

    @property
    def drained(self) -> bool:
        """Whether every group of the run has ended and none will come: the learner may stop."""
        return self.position.admitted is not None and len(self.position.ended) == self.position.admitted

    def offer(self, event: Event, partition: int, offset: int) -> list[Ended]:
        """Take in one event of `trajectories`. In any partition order, and any number of times."""
        ended: list[Ended] = []
        if isinstance(event, Drained):
            self._drained(event)
        elif isinstance(event, Trajectory | GroupDropped) and self._is_new(event):
            if isinstance(event, GroupDropped):
                ended = [self._end(event, Outcome(event.reason))]
            elif self.closing:
                ended = [self._end(event, Outcome.RUN_ENDED)]
            else:
                self._held[_number(event)] = _Held(event, partition, offset)
        else:
            self.position.duplicates_dropped += 1
        self._next_offsets[partition] = max(offset + 1, self._next_offsets.get(partition, 0))
        self._settle([partition])
        return ended

    def take_batch(self) -> Taken:
        """The next batch, lowest admission numbers first, after ending what is more than η updates old.

        A batch has B groups. The last one may have fewer: when the sources have ended and all that is
        not ended is held.
        """
        assert self._training is None, "finish the batch before taking another"
        stale = [
            number for number, held in sorted(self._held.items()) if self._age(held.trajectory) > self._max_staleness
        ]
        ended = self._end_held(stale, Outcome.STALE)
        if len(self._held) < self._batch_groups and not self._rest_is_held():
            return Taken(None, ended)
        numbers = sorted(self._held)[: self._batch_groups]
        if not numbers:
            return Taken(None, ended)
        groups = tuple(self._held[number].trajectory for number in numbers)
        self._training = Batch(groups, tuple(self._age(group) for group in groups))
        return Taken(self._training, ended)

    def finish_batch(self, batch: Batch, outcome: Literal[Outcome.TRAINED, Outcome.STEP_SKIPPED]) -> list[Ended]:
        """The step is done (the version rises) or was skipped: either way its groups have ended."""
        assert batch is self._training, "this is not the batch in training"
        if outcome == Outcome.TRAINED:
            self.position.version += 1
            self.position.max_staleness = max(self.position.max_staleness, *batch.ages)
        self._training = None
        return self._end_held([_number(group) for group in batch.groups], outcome)

    def close(self) -> list[Ended]:
        """`max_updates` or the time is reached: end what is held, and from now on every trajectory that comes."""
        assert self._training is None, "finish the batch before closing"
        self.closing = True
        return self._end_held(sorted(self._held), Outcome.RUN_ENDED)

    def _drained(self, event: Drained) -> None:
        position = self.position
        if event.log_id != position.log_id:
            return
        # the end of an earlier life is not ours: that life went on behind our checkpoint, and more is admitted since
        if event.reason == DrainReason.RUN_ENDED and event.incarnation != position.incarnation:
            return
        position.admitted = event.admitted
        position.drain_reason = event.reason

    def _is_new(self, event: Trajectory | GroupDropped) -> bool:
        number = event.admission_number
        if event.log_id != self.position.log_id or number is None:
            return False
        return number not in self.position.ended and number not in self._held

    def _rest_is_held(self) -> bool:
        position = self.position
        if position.admitted is None or position.drain_reason != DrainReason.SOURCES_ENDED:
            return False
        return len(position.ended) + len(self._held) == position.admitted

    def _age(self, trajectory: Trajectory) -> int:
        """Updates since the oldest sampled token of any member."""
        versions = [
            span.policy_version
            for member in trajectory.members
            for span in member.spans
            if span.policy_version is not None
        ]
        return max((self.position.age(version) for version in versions), default=0)

    def _end_held(self, numbers: Sequence[int], outcome: Outcome) -> list[Ended]:
        gone = [self._held.pop(number) for number in numbers]
        ended = [self._end(held.trajectory, outcome) for held in gone]
        self._settle({held.partition for held in gone})
        return ended

    def _end(self, event: Trajectory | GroupDropped, outcome: Outcome) -> Ended:
        position = self.position
        number = _number(event)
        assert number not in position.ended, f"group {number} would end twice"
        position.ended.add(number)
        position.outcomes[outcome] = position.outcomes.get(outcome, 0) + 1
        position.ledger_lines += 1
        if event.source is not None:
            position.sources.setdefault(event.source.source, NumberSet()).add(event.source.index)
        return Ended(
            log_id=event.log_id,
            admission_number=number,
            group_id=event.group_id,
            domain=event.domain,
            incarnation=position.incarnation,
            version=position.version,
            outcome=outcome,
            source=event.source,
        )

    def _settle(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            held = [held.offset for held in self._held.values() if held.partition == partition]
            self.position.offsets[partition] = min(held, default=self._next_offsets[partition])


def _number(event: Trajectory | GroupDropped) -> int:
    assert event.admission_number is not None, f"{event.group_id} has no admission number"
    return event.admission_number
