"""What a learner's position knows: the ended set, the lineage, the log."""

import msgspec
import pytest

from learner.book.position import NumberSet, Position, check_position
from schemas import Outcome, PolicyVersion


def test_number_set_fills_from_below() -> None:
    numbers = NumberSet()
    for number in (2, 0, 3, 0):
        numbers.add(number)
    assert (numbers.low, numbers.above) == (1, {2, 3})
    numbers.add(1)
    assert (numbers.low, numbers.above) == (4, set())
    assert len(numbers) == 4
    assert 3 in numbers
    assert 4 not in numbers


def test_position_survives_its_json() -> None:
    position = Position(log_id="log", offsets={0: 7, 3: 1}, sources={"functions": NumberSet(low=2, above={5})})
    position.begin(2, "log")
    position.ended.add(1)
    assert msgspec.json.decode(msgspec.json.encode(position), type=Position) == position


@pytest.mark.parametrize(
    ("version", "seconds", "max_seconds", "over"),
    [
        (3, 60.0, None, False),
        (4, 60.0, None, True),
        # three updates of 20 s: the fourth would end at 80 s
        (3, 60.0, 80.0, False),
        (3, 60.0, 79.0, True),
        (0, 0.0, 1.0, False),
        (1, 50.0, 10.0, True),
    ],
)
def test_a_run_is_over_by_its_updates_or_without_time_for_another(
    version: int, seconds: float, max_seconds: float | None, over: bool
) -> None:
    position = Position(version=version, training_seconds=seconds)
    assert position.is_over(max_updates=4, max_seconds=max_seconds) == over


def test_rolled_back_versions_age_from_the_resume_point() -> None:
    position = Position()
    position.begin(1, "log")
    position.version = 8
    position.begin(2, "log")  # incarnation 1 went on to 11, and was rolled back to 8
    position.version = 10
    assert position.age(PolicyVersion(1, 7)) == 3
    assert position.age(PolicyVersion(1, 8)) == 2
    assert position.age(PolicyVersion(1, 11)) == 2
    assert position.age(PolicyVersion(2, 9)) == 1
    assert position.age(PolicyVersion(2, 10)) == 0


def test_a_deeper_resume_makes_a_shallower_one_redundant() -> None:
    position = Position()
    for incarnation, version in ((1, 0), (2, 8), (3, 9), (4, 5)):
        position.version = version
        position.begin(incarnation, "log")
    assert position.resume_points == [PolicyVersion(1, 0), PolicyVersion(4, 5)]
    position.version = 6
    assert position.age(PolicyVersion(1, 12)) == 1
    assert position.age(PolicyVersion(3, 11)) == 1
    assert position.age(PolicyVersion(3, 4)) == 2


def test_a_new_log_starts_numbers_again_and_keeps_the_run() -> None:
    position = Position(
        log_id="old", offsets={0: 9}, ended=NumberSet(low=4), outcomes={"trained": 4}, ledger_lines=4, version=1,
        sources={"functions": NumberSet(low=4)}, admitted=6, drain_reason="run_ended",
    )  # fmt: skip
    position.begin(1, "new")
    assert (position.offsets, len(position.ended), position.admitted) == ({}, 0, None)
    assert (position.outcomes[Outcome.TRAINED], position.version, position.sources["functions"].low) == (4, 1, 4)
    check_position(position)


def test_an_incarnation_must_rise() -> None:
    position = Position(incarnation=3)
    with pytest.raises(AssertionError):
        position.begin(3, "log")


def test_progress_is_the_position_for_others() -> None:
    position = Position(log_id="log", ended=NumberSet(low=2, above={5, 4}), outcomes={"trained": 4}, version=1)
    position.sources["functions"] = NumberSet(low=1, above={3})
    progress = position.progress(run_id="run", closing=True, finished=False, updated_at=5.0)
    assert (progress.ended_low, progress.ended_above, progress.closing) == (2, (4, 5), True)
    assert (progress.sources["functions"].low, progress.sources["functions"].above) == (1, (3,))
