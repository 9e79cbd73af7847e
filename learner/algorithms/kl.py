"""How far two policies are apart."""

import torch
from torch import Tensor

from learner.algorithms.losses import log_ratio


def k3(logp_new: Tensor, logp_ref: Tensor, valid: Tensor, bound: float | None = None) -> Tensor:
    """exp(−d) − 1 + d with d = new − ref, a token each; 0 where not valid.

    Never negative, and unbiased for KL(new ‖ ref) where the tokens were sampled from `new`. `bound`
    clamps d to ±bound: without it a d of −90 overflows float32.
    """
    difference = log_ratio(logp_new, logp_ref, valid, bound)
    return torch.where(valid, torch.expm1(-difference) + difference, difference.new_zeros(()))


def exact(logp_all: Tensor, ref_all: Tensor) -> Tensor:
    """KL(policy ‖ ref) in nats, a position each. Both: log-probs of the whole vocabulary, [positions, vocabulary]."""
    return (logp_all.exp() * (logp_all - ref_all)).sum(-1).clamp(min=0.0)
