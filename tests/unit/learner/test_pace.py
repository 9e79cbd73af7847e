"""Micro-batches of a few seconds, from the speed of those before."""

import pytest

from learner.training import pace as module
from learner.training.pace import LEAST_TOKENS, MICRO_BATCH_SECONDS, Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def run(pace: Pace, clock: Clock, tokens: int, tokens_per_second: float) -> None:
    with pace.timed(tokens):
        clock.now += tokens / tokens_per_second


def test_a_micro_batch_takes_the_seconds_aimed_at(clock: Clock):
    pace = Pace(most_tokens=1_000_000)
    assert pace.tokens == LEAST_TOKENS  # nothing is known yet
    for _ in range(10):
        run(pace, clock, pace.tokens, tokens_per_second=500)
    assert pace.tokens == 500 * MICRO_BATCH_SECONDS
    assert pace.longest_seconds == pytest.approx(MICRO_BATCH_SECONDS)
    for _ in range(10):  # half the machine is taken away
        run(pace, clock, pace.tokens, tokens_per_second=250)
    assert pace.tokens == pytest.approx(250 * MICRO_BATCH_SECONDS, rel=0.01)


def test_neither_memory_nor_the_least_is_overstepped(clock: Clock):
    fast, slow, small = Pace(4096), Pace(4096), Pace(64)
    run(fast, clock, 256, tokens_per_second=1e6)
    run(slow, clock, 256, tokens_per_second=1)
    run(small, clock, 64, tokens_per_second=1)
    assert (fast.tokens, slow.tokens, small.tokens) == (4096, LEAST_TOKENS, 64)
