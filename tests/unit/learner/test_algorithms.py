"""Every algorithm that can be named is one, and a toy of one's own needs nothing beyond a file and an entry."""

import pkgutil
from typing import Self

import pytest
import torch
from torch import Tensor

from learner.algorithms.base import Algorithm
from learner.algorithms.grpo import Grpo
from learner.algorithms.registry import ALGORITHMS
from learner.config import Training
from learner.training.samples import samples_of
from tests.learner_support import trajectory

TRAINING = Training(batch_groups=1, max_staleness=0, max_updates=1, learning_rate=1e-5, clip_low=0.1, clip_high=0.3)


class Reinforce(Algorithm):
    """Rewards as they are, no baseline, no correction."""

    @classmethod
    def of(cls, training: Training) -> Self:
        return cls()

    def advantages(self, rewards: Tensor, scorable: Tensor) -> Tensor:
        return rewards * scorable

    def token_losses(self, logp: Tensor, behaviour: Tensor, advantages: Tensor, valid: Tensor) -> Tensor:
        return torch.where(valid, -logp * advantages, 0.0)

    def outside(self, ratio: Tensor, advantages: Tensor) -> Tensor:
        return torch.zeros_like(ratio, dtype=torch.bool)


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_each_name_is_an_algorithm(name: str):
    assert isinstance(pkgutil.resolve_name(ALGORITHMS[name].path).of(TRAINING), Algorithm)


def test_grpo_takes_its_bounds_from_the_section():
    algorithm = Grpo.of(TRAINING)
    logp = torch.tensor([1.5, 1.2, 0.5]).log()
    gain, ones = torch.tensor([1.0, 1.0, -1.0]), torch.ones(3, dtype=torch.bool)
    losses = algorithm.token_losses(logp, torch.zeros(3), gain, ones)
    assert losses.tolist() == pytest.approx([-1.3, -1.2, 0.9])
    assert algorithm.outside(logp.exp(), gain).tolist() == [True, False, True]


def test_samples_have_the_advantages_of_the_algorithm_that_is_given():
    samples = samples_of([trajectory(0)], Reinforce(), lambda _: 0)
    assert [sample.advantage for sample in samples] == [1.0, 0.0, -1.0]
