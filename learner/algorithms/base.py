"""What an algorithm decides: how good each answer was, and what a token's log-prob costs.

A new one is a file beside `grpo.py` and an entry in `registry.py`. Sampling, batches, micro-batches, the denominator
over the whole batch and the optimizer are not its business.
"""

from abc import ABC, abstractmethod
from typing import Self

from torch import Tensor

from learner.config import Training


class Algorithm(ABC):
    """Pure functions of tensors, with the algorithm's own settings."""

    @classmethod
    @abstractmethod
    def of(cls, training: Training) -> Self:
        """With what the run's section says."""

    @abstractmethod
    def advantages(self, rewards: Tensor, scorable: Tensor) -> Tensor:
        """Of the members of one group.

        rewards: [members] float64, any value where not scorable; scorable: [members] bool. Returns [members]; 0 where
        not scorable.
        """

    @abstractmethod
    def token_losses(self, logp: Tensor, behaviour: Tensor, advantages: Tensor, valid: Tensor) -> Tensor:
        """What each token adds to the sum that is minimised, with the correction for who sampled it; [tokens].

        logp has the gradient; behaviour: the sampler's log-probs; all float32, `valid` bool: 0 where not.
        """

    @abstractmethod
    def outside(self, ratio: Tensor, advantages: Tensor) -> Tensor:
        """Tokens that the correction leaves without gradient (bool): reported as the clip fraction."""
