"""Policy losses: pure functions of log-probs and advantages.

All tensors of one call have the same shape. Values where `valid` is False are garbage (they may be
NaN or Inf): they are selected away, never multiplied by 0. Log-probs are natural, under the same temperature on
both sides; advantages and behaviour log-probs are constants.
"""

import torch
from torch import Tensor

LOG_RATIO_BOUND = 20.0
"""exp(20) is 5·10⁸: no real ratio is near, and nothing overflows. Beyond it the gradient is 0."""


def log_ratio(logp_new: Tensor, logp_old: Tensor, valid: Tensor, bound: float | None = LOG_RATIO_BOUND) -> Tensor:
    """new − old within ±bound; 0 where not valid."""
    zero = logp_new.new_zeros(())
    difference = torch.where(valid, logp_new, zero) - torch.where(valid, logp_old, zero)
    return difference if bound is None else difference.clamp(-bound, bound)


def ppo_clip(
    logp_new: Tensor,
    logp_old: Tensor,
    advantages: Tensor,
    valid: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
    log_ratio_bound: float = LOG_RATIO_BOUND,
) -> Tensor:
    """Token losses −min(r·A, clip(r, 1 − clip_low, 1 + clip_high)·A), r = exp(new − old); 0 where not valid.

    With `old` the sampler's own log-probs the ratio is the off-policy correction itself. `dual_clip` c bounds
    the loss of a negative advantage by −c·A.
    """
    ratio = log_ratio(logp_new, logp_old, valid, log_ratio_bound).exp()
    weight = torch.where(valid, advantages, advantages.new_zeros(()))
    loss = -torch.minimum(ratio * weight, ratio.clamp(1 - clip_low, 1 + clip_high) * weight)
    if dual_clip is not None:
        loss = torch.where(weight < 0, torch.minimum(loss, -dual_clip * weight), loss)
    return torch.where(valid, loss, loss.new_zeros(()))


def clipped(ratio: Tensor, advantages: Tensor, *, clip_low: float, clip_high: float) -> Tensor:
    """Where `ppo_clip` takes the clipped term, which has no gradient (bool)."""
    return ((advantages > 0) & (ratio > 1 + clip_high)) | ((advantages < 0) & (ratio < 1 - clip_low))


def token_mean(token_loss: Tensor, valid: Tensor, denominator: float) -> Tensor:
    """Sum over valid tokens / denominator: the batch's number of valid tokens, whatever part of it this is.

    The parts of a batch then add up to the whole's loss and gradient. No valid token in the batch: 0.
    """
    total = torch.where(valid, token_loss, token_loss.new_zeros(())).sum()
    return total / max(denominator, 1.0)
