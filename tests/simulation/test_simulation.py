"""The simulation itself: all well as the code is, and each planted bug found."""

import pytest

from tests.simulation.bugs import BUGS, planted
from tests.simulation.world import simulate

SEEDS = 200
SOAK_SEEDS = 8000
SEEDS_PER_BUG = 1000


@pytest.mark.parametrize(
    "first",
    [*range(0, SEEDS, 50), *(pytest.param(one, marks=pytest.mark.slow) for one in range(SEEDS, SOAK_SEEDS, 50))],
)
def test_every_seed_holds(first: int) -> None:
    for seed in range(first, first + 50):
        world, violation = simulate(seed)
        if violation is not None:
            pytest.fail(f"{world.story()}\n\n{violation}\n\npython -m tests.simulation --seed {seed}")


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_planted_bug_is_found(bug: str) -> None:
    with planted(bug):
        found = any(simulate(seed)[1] is not None for seed in range(SEEDS_PER_BUG))
    assert found, f"{SEEDS_PER_BUG} seeds do not find {bug}"


def test_a_bug_is_taken_out_again() -> None:
    with planted("commit_one_too_far"):
        assert simulate(0)[1] is not None or simulate(1)[1] is not None
    assert simulate(0)[1] is None


def test_a_seed_always_tells_the_same_story() -> None:
    assert simulate(7)[0].story() == simulate(7)[0].story()
