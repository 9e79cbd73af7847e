"""How far a partition may be committed. The first two cases are faust-streaming issue 606."""

import random

import pytest

from wire.hop.watermark import Watermark


def watermark(delivered: list[int], done: list[int]) -> Watermark:
    mark = Watermark()
    for offset in delivered:
        assert mark.delivered(offset)
    for offset in done:
        mark.done(offset)
    return mark


def test_one_in_flight_holds_the_commit_though_all_after_it_are_done() -> None:
    # 2585 was committed, 2585 itself is in flight, 2586-2589 are done: Faust commits 2590
    mark = watermark([2585, 2586, 2587, 2588, 2589], [2586, 2587, 2588, 2589])
    assert mark.committable() == 2585
    mark.done(2585)
    assert mark.committable() == 2590


def test_the_first_event_of_a_fresh_consumer_group_is_not_passed() -> None:
    # nothing committed yet, 0 is in flight, 1-3 are done: Faust commits 4
    mark = watermark([0, 1, 2, 3], [1, 2, 3])
    assert mark.committable() == 0
    mark.done(0)
    assert mark.committable() == 4


def test_offsets_that_were_never_delivered_are_no_holes() -> None:
    mark = watermark([3, 4, 7, 8], [3, 7, 8])
    assert mark.committable() == 4
    mark.done(4)
    assert mark.committable() == 9


def test_a_gap_is_not_skipped_while_something_below_it_is_in_flight() -> None:
    assert watermark([10, 20], [20]).committable() == 10


def test_nothing_delivered_commits_nothing() -> None:
    assert Watermark().committable() is None
    assert Watermark().committable(floor=7) is None


def test_the_floor_holds_what_is_done() -> None:
    mark = watermark([5, 6, 7], [5, 6, 7])
    assert mark.committable(floor=6) == 6
    assert mark.committable(floor=100) == 8
    assert mark.committable() == 8


def test_what_was_delivered_before_is_not_delivered_again() -> None:
    mark = watermark([5, 6], [5])
    assert not mark.delivered(5)
    assert not mark.delivered(6)
    assert mark.in_flight == 1


def test_done_without_delivery_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Watermark().done(3)


def test_any_order_of_completion_never_passes_one_in_flight() -> None:
    chance = random.Random(3)
    for _ in range(200):
        offsets = sorted(chance.sample(range(100), 12))
        mark = watermark(offsets, [])
        in_flight = set(offsets)
        for offset in chance.sample(offsets, len(offsets)):
            mark.done(offset)
            in_flight.remove(offset)
            assert mark.committable() == (min(in_flight) if in_flight else offsets[-1] + 1)
