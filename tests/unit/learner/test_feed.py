"""What becomes of each event of `trajectories`."""

import msgspec
import pytest

from learner.book.feed import Ended, Feed
from learner.book.position import Position, check_position
from schemas import (
    Drained,
    DropReason,
    GroupDropped,
    Member,
    Outcome,
    PolicyVersion,
    SourcePosition,
    TokenSpan,
    Trajectory,
)  # fmt: skip

LOG = "log"


def trajectory(number: int, *versions: tuple[int, int], log_id: str = LOG) -> Trajectory:
    spans = tuple(
        TokenSpan(token_ids=b"\0\0\0\0", trainable=True, policy_version=PolicyVersion(*version))
        for version in versions or ((1, 0),)
    )
    return Trajectory(
        group_id=f"g{number}", log_id=log_id, admission_number=number, domain="d", prompt_id="p", num_samples=1,
        members=(Member(sample_index=0, digest="x", spans=spans, reward=1.0),),
        source=SourcePosition(source="s", index=number),
    )  # fmt: skip


def dropped(number: int, reason: DropReason = DropReason.DEADLINE) -> GroupDropped:
    return GroupDropped(group_id=f"g{number}", log_id=LOG, admission_number=number, domain="d", reason=reason)


def drained(admitted: int, reason: str = "sources_ended", incarnation: int = 0) -> Drained:
    return Drained(log_id=LOG, admitted=admitted, reason=reason, incarnation=incarnation)


def new_feed(batch_groups: int = 2, max_staleness: int = 1, position: Position | None = None) -> Feed:
    position = position or Position()
    position.begin(position.incarnation + 1, LOG)
    return Feed(position, batch_groups=batch_groups, max_staleness=max_staleness)


def outcomes(ended: list[Ended]) -> list[tuple[int, str]]:
    return [(line.admission_number, line.outcome) for line in ended]


def step(feed: Feed) -> list[Ended]:
    taken = feed.take_batch()
    assert taken.batch is not None
    return taken.ended + feed.finish_batch(taken.batch, Outcome.TRAINED)


def test_a_batch_is_trained_once_lowest_numbers_first() -> None:
    feed = new_feed()
    for offset, number in enumerate((2, 0, 1)):
        assert feed.offer(trajectory(number), 0, offset) == []
    assert outcomes(step(feed)) == [(0, "trained"), (1, "trained")]
    assert (feed.position.version, feed.position.outcomes[Outcome.TRAINED], feed.held) == (1, 2, 1)
    assert feed.take_batch().batch is None
    check_position(feed.position)


def test_any_second_event_of_a_group_is_dropped_and_counted() -> None:
    feed = new_feed(batch_groups=1)
    feed.offer(trajectory(0), 0, 0)
    assert feed.offer(trajectory(0), 0, 1) == []  # held
    assert feed.offer(dropped(0), 0, 2) == []  # a replayed collect may end it otherwise: the first one wins
    step(feed)
    assert feed.offer(trajectory(0), 0, 3) == []  # ended
    assert feed.offer(trajectory(1, log_id="another"), 0, 4) == []
    assert feed.position.duplicates_dropped == 4
    assert feed.position.outcomes == {"trained": 1}


def test_dropped_groups_end_at_once_with_their_reason() -> None:
    feed = new_feed()
    ended = feed.offer(dropped(0), 0, 0)
    assert outcomes(ended) == [(0, "deadline")]
    assert feed.position.ended.low == 1


def test_offsets_stay_at_the_lowest_group_held() -> None:
    feed = new_feed()
    feed.offer(dropped(3), 0, 4)
    assert feed.position.offsets == {0: 5}
    feed.offer(trajectory(1), 0, 5)
    feed.offer(dropped(2), 0, 6)
    feed.offer(trajectory(0), 1, 9)
    assert feed.position.offsets == {0: 5, 1: 9}
    taken = feed.take_batch()
    assert taken.batch is not None
    assert feed.position.offsets == {0: 5, 1: 9}  # not trained yet: a crash now must find them again
    feed.finish_batch(taken.batch, Outcome.TRAINED)
    assert feed.position.offsets == {0: 7, 1: 10}


def test_a_restored_position_gives_exactly_what_had_not_ended() -> None:
    log = [trajectory(0), dropped(1), trajectory(2), trajectory(3), dropped(4)]
    feed = new_feed()
    for offset, event in enumerate(log):
        feed.offer(event, 0, offset)
    step(feed)
    saved = msgspec.json.encode(feed.position)
    restored = new_feed(position=msgspec.json.decode(saved, type=Position))
    again = [
        restored.offer(event, 0, offset) for offset, event in enumerate(log) if offset >= restored.position.offsets[0]
    ]
    assert not any(again)
    assert restored.held == 1
    assert restored.position.incarnation == 2


def test_stale_groups_end_when_a_batch_is_taken() -> None:
    feed = new_feed(batch_groups=1, max_staleness=1)
    feed.offer(trajectory(5, (1, 0)), 0, 0)
    for number in range(3):
        feed.offer(trajectory(number, (1, number)), 0, number + 1)
    for number in range(2):
        assert outcomes(step(feed)) == [(number, "trained")]
    taken = feed.take_batch()
    assert outcomes(taken.ended) == [(5, "stale")]
    assert taken.batch is not None
    assert taken.batch.groups[0].admission_number == 2
    assert feed.position.max_staleness == 0


def test_the_oldest_token_decides() -> None:
    feed = new_feed(batch_groups=1, max_staleness=1)
    feed.position.version = 2
    feed.offer(trajectory(0, (1, 2), (1, 0)), 0, 0)
    taken = feed.take_batch()
    assert (outcomes(taken.ended), taken.batch) == ([(0, "stale")], None)


def test_rolled_back_tokens_age_from_the_resume_point() -> None:
    feed = new_feed(batch_groups=1, max_staleness=1, position=Position(incarnation=1, version=4))
    feed.offer(trajectory(0, (1, 9)), 0, 0)
    taken = feed.take_batch()
    assert taken.batch is not None
    assert taken.batch.ages == (0,)
    feed.finish_batch(taken.batch, Outcome.TRAINED)
    feed.position.version = 6
    feed.offer(trajectory(1, (1, 9)), 0, 1)
    assert outcomes(feed.take_batch().ended) == [(1, "stale")]


def test_a_skipped_step_ends_its_groups_and_makes_no_version() -> None:
    feed = new_feed(batch_groups=1)
    feed.offer(trajectory(0), 0, 0)
    batch = feed.take_batch().batch
    assert batch is not None
    assert outcomes(feed.finish_batch(batch, Outcome.STEP_SKIPPED)) == [(0, "step_skipped")]
    assert (feed.position.version, feed.position.ended.low) == (0, 1)


def test_the_last_batch_may_be_partial_once_the_sources_ended() -> None:
    feed = new_feed(batch_groups=4)
    feed.offer(trajectory(0), 0, 0)
    feed.offer(drained(3), 0, 1)
    feed.offer(dropped(2), 1, 0)
    assert feed.take_batch().batch is None  # number 1 is still under way
    feed.offer(trajectory(1), 1, 1)
    assert not feed.drained
    assert outcomes(step(feed)) == [(0, "trained"), (1, "trained")]
    assert feed.drained


def test_a_closing_learner_ends_everything_as_run_ended() -> None:
    feed = new_feed(batch_groups=1)
    for number in range(3):
        feed.offer(trajectory(number), 0, number)
    step(feed)
    assert outcomes(feed.close()) == [(1, "run_ended"), (2, "run_ended")]
    assert outcomes(feed.offer(trajectory(3), 0, 3)) == [(3, "run_ended")]
    feed.offer(drained(5, "run_ended", incarnation=1), 0, 4)
    assert not feed.drained
    feed.offer(dropped(4, DropReason.RUN_ENDED), 0, 5)
    assert feed.drained


def test_the_end_of_a_life_behind_the_checkpoint_is_not_meant() -> None:
    feed = new_feed(position=Position(incarnation=1))
    feed.offer(dropped(0), 0, 0)
    feed.offer(drained(1, "run_ended", incarnation=1), 0, 1)
    feed.close()
    assert not feed.drained  # since then the scheduler may have admitted more for this life
    feed.offer(dropped(1), 0, 2)
    feed.offer(drained(2, "run_ended", incarnation=2), 0, 3)
    assert feed.drained
    feed.position.begin(3, LOG)
    assert not feed.drained


def test_the_end_of_the_sources_holds_over_a_resume() -> None:
    feed = new_feed()
    feed.offer(dropped(0), 0, 0)
    feed.offer(drained(1), 0, 1)
    feed.position.begin(2, LOG)
    assert feed.drained


def test_full_bounds_what_is_held_and_never_stands_in_the_way() -> None:
    feed = new_feed(batch_groups=2, max_staleness=1)
    for number in range(4):
        assert not feed.full
        feed.offer(trajectory(number), 0, number)
    assert feed.full
    step(feed)
    assert not feed.full


def test_a_batch_must_be_finished_before_the_next() -> None:
    feed = new_feed(batch_groups=1)
    feed.offer(trajectory(0), 0, 0)
    feed.take_batch()
    with pytest.raises(AssertionError):
        feed.take_batch()
