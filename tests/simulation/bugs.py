"""Mistakes that would be easy to make. Each is planted into the real code for a while; the simulation must find it.

A bug is a list of (owner, attribute, replacement); `planted` puts them in and takes them out again.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from learner.book.feed import Feed
from learner.book.position import Position
from schemas import Event, Outcome, PolicyVersion, Progress, Reward, Rollout, SourceEnd
from streams.collect import gather
from streams.collect.gather import Gather
from streams.collect.group import Group
from streams.scheduler.admission import Admission
from streams.scheduler.prompt_lane import PromptLane
from tests.simulation import learner as simulated_learner
from wire.hop.watermark import Watermark
from wire.kafka.records import Outgoing, Place

Patch = tuple[Any, str, Any]


def _commit_one_too_far() -> list[Patch]:
    right = Watermark.committable

    def wrong(self: Watermark, floor: int | None = None) -> int | None:
        offset = right(self, floor)
        return offset + 1 if offset is not None and self.in_flight else offset

    return [(Watermark, "committable", wrong)]


def _commit_the_highest_done() -> list[Patch]:
    """What Faust does: the committed offset jumps over one in flight."""

    def wrong(self: Watermark, floor: int | None = None) -> int | None:
        done = [offset for offset in range((self._highest or -1) + 1) if offset not in self._in_flight]  # pyright: ignore
        offset = max(done, default=-1) + 1
        return min(offset, floor) if floor is not None else offset or None

    return [(Watermark, "committable", wrong)]


def _slot_never_freed() -> list[Patch]:
    """The groups of a skipped step are forgotten instead of ended."""
    right = Feed.finish_batch

    def wrong(self: Feed, batch: Any, outcome: Any) -> Any:
        if outcome != Outcome.STEP_SKIPPED:
            return right(self, batch, outcome)
        self._training = None  # pyright: ignore[reportPrivateUsage]
        for group in batch.groups:
            self._held.pop(group.admission_number)  # pyright: ignore[reportPrivateUsage]
        return []

    return [(Feed, "finish_batch", wrong)]


def _digest_not_compared() -> list[Patch]:
    """A reward belongs to its sample, whatever the tokens."""
    right = Group.add_reward

    def wrong(self: Group, reward: Reward) -> bool:
        index = reward.context.sample_index
        rollout = self._rollouts.get(index)  # pyright: ignore[reportPrivateUsage]
        if rollout is not None:
            context = msgspec.structs.replace(reward.context, digest=rollout[1])
            reward = msgspec.structs.replace(reward, context=context)
        return right(self, reward)

    return [(Group, "add_reward", wrong)]


def _last_rollout_wins() -> list[Patch]:
    right = Group.add_rollout

    def wrong(self: Group, rollout: Rollout, offset: int) -> bool:
        self._rollouts.pop(rollout.sample_index, None)  # pyright: ignore[reportPrivateUsage]
        return right(self, rollout, offset)

    return [(Group, "add_rollout", wrong)]


def _no_floor() -> list[Patch]:
    """Collect commits what it has handled."""

    def wrong(self: Gather, topic: str, partition: int) -> int | None:
        return None

    return [(Gather, "floor", wrong)]


def _floor_of_members_only() -> list[Patch]:
    """Collect holds members and forgets to hold generations."""
    right = Gather.floor

    def wrong(self: Gather, topic: str, partition: int) -> int | None:
        return None if topic == "generations" else right(self, topic, partition)

    return [(Gather, "floor", wrong)]


def _ended_before_published() -> list[Patch]:
    """A group lets go of its floors when its end is decided, and the end is not tried again."""
    right = gather._end  # pyright: ignore[reportPrivateUsage]

    def wrong(state: Any, entry: Any, end: Any) -> Any:
        right(state, entry, end)
        entry.settled = True
        state.forget_settled()
        return end

    return [(gather, "_end", wrong)]


def _drained_at_once() -> list[Patch]:
    def wrong(state: Any, partition: int) -> list[Any]:
        outs: list[Any] = []
        for entry in state.entries:
            if entry.drained is not None and entry.end is None:
                entry.end = Outgoing("trajectories", "run", entry.drained, partition)
                outs.append(entry.end)
        return outs

    return [(gather, "_drained", wrong)]


def _position_past_held() -> list[Patch]:
    """The checkpoint's offsets are those to read next, whatever is held."""

    def wrong(self: Feed, partitions: Any) -> None:
        for partition in partitions:
            self.position.offsets[partition] = self._next_offsets[partition]  # pyright: ignore[reportPrivateUsage]

    return [(Feed, "_settle", wrong)]


def _duplicates_trained() -> list[Patch]:
    """What has ended is forgotten."""

    def wrong(self: Feed, event: Any) -> bool:
        return event.log_id == self.position.log_id and event.admission_number not in self._held  # pyright: ignore

    return [(Feed, "_is_new", wrong)]


def _numbers_survive_their_log() -> list[Patch]:
    right = Position.begin

    def wrong(self: Position, incarnation: int, log_id: str) -> None:
        self.log_id = log_id
        right(self, incarnation, log_id)

    return [(Position, "begin", wrong)]


def _rolled_back_versions_stay_young() -> list[Patch]:
    def wrong(self: Position, sampled_with: PolicyVersion) -> int:
        return sampled_with.version

    return [(Position, "surviving_version", wrong)]


def _stale_groups_trained() -> list[Patch]:
    right = Feed._end_held  # pyright: ignore[reportPrivateUsage]

    def wrong(self: Feed, numbers: Sequence[int], outcome: Outcome) -> Any:
        return [] if outcome == Outcome.STALE else right(self, numbers, outcome)

    return [(Feed, "_end_held", wrong)]


def _any_life_may_end() -> list[Patch]:
    """An end that the scheduler gave to an earlier life of the learner is taken for the end of this one."""

    def wrong(self: Feed, event: Any) -> None:
        if event.log_id == self.position.log_id:
            self.position.admitted, self.position.drain_reason = event.admitted, event.reason

    return [(Feed, "_drained", wrong)]


def _no_partial_batch() -> list[Patch]:
    return [(Feed, "_rest_is_held", lambda self: False)]


def _ledger_not_rolled_back() -> list[Patch]:
    class Kept(list[Any]):
        def __getitem__(self, item: Any) -> Any:
            return self if isinstance(item, slice) and item.start is None else super().__getitem__(item)

    right = simulated_learner.Disk.__init__

    def wrong(self: simulated_learner.Disk) -> None:
        right(self)
        self.ledger = Kept()

    return [(simulated_learner.Disk, "__init__", wrong)]


def _identities_forgotten() -> list[Patch]:
    """A new scheduler knows its numbers, and not what it has admitted."""
    right = Admission.rebuilt

    def wrong(self: Admission, progress: Progress | None) -> None:
        right(self, progress)
        self._known.clear()  # pyright: ignore[reportPrivateUsage]

    return [(Admission, "rebuilt", wrong)]


def _numbers_from_progress() -> list[Patch]:
    """A new scheduler goes on after what has ended, not after what was admitted."""
    right = Admission.rebuilt

    def wrong(self: Admission, progress: Progress | None) -> None:
        self._rebuilt_numbers.clear()  # pyright: ignore[reportPrivateUsage]
        right(self, progress)

    return [(Admission, "rebuilt", wrong)]


def _lower_incarnation_heard() -> list[Patch]:
    right = Admission.on_progress

    def wrong(self: Admission, event: Progress) -> None:
        self._progress = None  # pyright: ignore[reportPrivateUsage]
        right(self, event)

    return [(Admission, "on_progress", wrong)]


def _ends_counted_up_only() -> list[Patch]:
    """A learner that went back to its checkpoint is not believed."""
    right = Admission.on_progress

    def wrong(self: Admission, event: Progress) -> None:
        before = self._progress  # pyright: ignore[reportPrivateUsage]
        if before is None or event.ended_low >= before.ended_low or event.log_id != before.log_id:
            right(self, event)

    return [(Admission, "on_progress", wrong)]


def _source_end_committed() -> list[Patch]:
    right = PromptLane.offer

    def wrong(self: PromptLane, event: Event, record: Any) -> None:
        right(self, event, record)
        if isinstance(event, SourceEnd):
            self._source_ends.clear()  # pyright: ignore[reportPrivateUsage]

    return [(PromptLane, "offer", wrong)]


def _prompts_committed_when_read() -> list[Patch]:
    def wrong(self: PromptLane, place: Place) -> int | None:
        return self._next_offsets.get(place)  # pyright: ignore[reportPrivateUsage]

    return [(PromptLane, "floor", wrong)]


def _one_admitted_too_many() -> list[Patch]:
    right = Admission._bound  # pyright: ignore[reportPrivateUsage]
    return [(Admission, "_bound", lambda self: right(self) + 1)]


BUGS: dict[str, Callable[[], list[Patch]]] = {
    make.__name__.removeprefix("_"): make
    for make in (
        _commit_one_too_far, _commit_the_highest_done, _slot_never_freed, _digest_not_compared, _last_rollout_wins,
        _no_floor, _floor_of_members_only, _ended_before_published, _drained_at_once, _position_past_held,
        _duplicates_trained, _numbers_survive_their_log, _rolled_back_versions_stay_young, _stale_groups_trained,
        _any_life_may_end, _no_partial_batch, _ledger_not_rolled_back, _identities_forgotten, _numbers_from_progress,
        _lower_incarnation_heard, _ends_counted_up_only, _source_end_committed, _prompts_committed_when_read,
        _one_admitted_too_many,
    )
}  # fmt: skip


@contextmanager
def planted(name: str) -> Generator[None]:
    """The code with this bug in it."""
    patches = [(owner, attribute, getattr(owner, attribute), wrong) for owner, attribute, wrong in BUGS[name]()]
    try:
        for owner, attribute, _, wrong in patches:
            setattr(owner, attribute, wrong)
        yield
    finally:
        for owner, attribute, right, _ in patches:
            setattr(owner, attribute, right)
