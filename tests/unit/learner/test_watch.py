"""What a step's mismatch is made of, and what a person is told."""

import dataclasses

import pytest

from learner.training.probe import Publication
from learner.training.step import StepResult
from learner.watch import Causes, Watch

RESULT = StepResult(
    applied=True,
    loss=0.1,
    grad_norm=1.0,
    mismatch_kl=0.0,
    fresh_mismatch_kl=None,
    entropy=1.0,
    ratio_mean=1.0,
    ratio_min=0.9,
    ratio_max=1.1,
    clip_fraction=0.01,
    tokens=100,
    trainable_tokens=50,
    micro_batches=1,
    longest_micro_batch_seconds=1.0,
    learning_rate=1e-5,
)


ROUNDED = Publication(2e-5, None, None)


def watch(publication: Publication | None = ROUNDED) -> Watch:
    watching = Watch(warmup_updates=0, snapshot_dtype="bfloat16")
    if publication is not None:
        watching.published(publication)
    return watching


def step(mismatch_kl: float, fresh: float | None) -> StepResult:
    return dataclasses.replace(RESULT, mismatch_kl=mismatch_kl, fresh_mismatch_kl=fresh)


def test_a_mismatch_is_shared_out_by_cause():
    watching = watch()
    # fresh tokens know no staleness: what rounding does not explain is the engine's
    causes = watching.causes(step(1e-3, fresh=1.2e-4))
    assert (causes.engine, causes.rounding, causes.staleness) == pytest.approx((1e-4, 2e-5, 8.8e-4))
    # a batch without fresh tokens: the engine is as it was last seen
    causes = watching.causes(step(2e-3, fresh=None))
    assert (causes.engine, causes.staleness) == pytest.approx((1e-4, 2e-3 - 1.2e-4))


def test_what_is_not_known_is_not_guessed():
    assert watch(None).causes(step(1e-3, fresh=1e-4)) == Causes()
    assert watch().causes(step(1e-3, fresh=None)) == Causes(None, 2e-5, None)
    assert watch().causes(dataclasses.replace(step(1e-3, 1e-4), applied=False)) == Causes()


def test_a_snapshot_that_is_not_what_was_trained_is_an_alarm():
    assert watch(None).published(Publication(0.99e-4, None, None)) == []
    [warning] = watch(None).published(Publication(3.2e-3, None, None))
    assert "KL(published ‖ trained) is 3.2e-03 nats" in warning
    assert "snapshots are bfloat16" in warning


@pytest.mark.parametrize(
    ("result", "publication", "words"),
    [
        (dataclasses.replace(RESULT, clip_fraction=0.3), Publication(0, 1e-3, 1.0), "too high: 30% of the tokens"),
        (RESULT, Publication(0, 0.4, 1.0), "too high: one update moved the policy by 0.40 nats"),
    ],
)
def test_a_learning_rate_that_is_too_high_shows_in_the_first_updates(
    result: StepResult, publication: Publication, words: str
):
    [warning] = watch().update(1, result, Causes(), publication)
    assert words in warning
    assert watch().update(6, result, Causes(), publication) == []


def test_a_run_in_which_nothing_moves_is_told_so_once():
    watching, still = watch(), Publication(0, 1e-9, 0.004)
    told = [watching.update(version, RESULT, Causes(), still) for version in range(1, 9)]
    assert [len(warnings) for warnings in told] == [0, 0, 0, 0, 1, 0, 0, 0]
    assert "0.40% of the published entries changed" in told[4][0]

    watching = watch()
    moving = [watching.update(1, RESULT, Causes(), Publication(0, 1e-4, 0.5))]
    moving += [watching.update(version, RESULT, Causes(), still) for version in range(2, 9)]
    assert not any(moving)


def test_sampler_and_learner_that_compute_differently_are_told_at_any_time():
    [warning] = watch().update(100, RESULT, Causes(engine=0.2), Publication(0, 1e-4, 1.0))
    assert "disagree on the same weights by 2.0e-01 nats" in warning
