"""How much better an answer was than its group: pure functions of rewards."""

import torch
from torch import Tensor

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
