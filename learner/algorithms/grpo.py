"""GRPO: how much better an answer was than its group (Shao et al. 2024, https://arxiv.org/abs/2402.03300)."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from learner.algorithms.base import Algorithm
from learner.algorithms.losses import clipped, ppo_clip
from learner.config import Training

GRPO_EPSILON = 1e-6


def grpo(rewards: Tensor, scorable: Tensor, epsilon: float = GRPO_EPSILON) -> Tensor:
    """Group-relative advantages (r − mean) / (std + ε), std over n − 1.

    rewards: [members] of one group, any value where not scorable. scorable: [members] bool.
    Returns [members]: 0 where not scorable (out of mean, std and n), and exactly 0 for a group whose
    scorable rewards are all equal, or that has only one.

    Left out of GRPO here: the KL term to a reference policy, and the division by each answer's length.
    """
    advantages = torch.zeros_like(rewards)
    scored = rewards[scorable]
    if len(scored) < 2 or bool(scored.max() == scored.min()):
        return advantages
    advantages[scorable] = (scored - scored.mean()) / (scored.std(correction=1) + epsilon)
    return advantages


@dataclass(frozen=True, slots=True)
class Grpo(Algorithm):
    """Group-relative advantages under a clipped ratio against the sampler's own log-probs."""

    clip_low: float
    clip_high: float
    """The ratio stays in [1 − clip_low, 1 + clip_high]."""

    @classmethod
    def of(cls, training: Training) -> Self:
        return cls(training.clip_low, training.clip_high)

    def advantages(self, rewards: Tensor, scorable: Tensor) -> Tensor:
        return grpo(rewards, scorable)

    def token_losses(self, logp: Tensor, behaviour: Tensor, advantages: Tensor, valid: Tensor) -> Tensor:
        return ppo_clip(logp, behaviour, advantages, valid, clip_low=self.clip_low, clip_high=self.clip_high)

    def outside(self, ratio: Tensor, advantages: Tensor) -> Tensor:
        return clipped(ratio, advantages, clip_low=self.clip_low, clip_high=self.clip_high)
