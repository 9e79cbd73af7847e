"""From float32 masters to bfloat16 so that small steps are not lost.

bfloat16 keeps 8 bits of a number: rounded to the nearest, an entry moves only when it has changed by 1/512 to 1/256 of
itself. A published model's entries lie on that grid exactly, so a learning rate of 1e-5 moves 2 % of them at the first
step, and the sampler sees 3 % of what the step did to log-probs (SmolLM2-135M).

Here an entry is rounded up or down by where it lies between its two neighbours and a noise of its own (stochastic
rounding; Gupta et al. 2015, https://arxiv.org/abs/1502.02551): on average over entries a step arrives whole. The noise
is the same at every step, so an entry changes only when its master has, and one that lies on the grid stays there.
"""

import torch
from torch import Tensor

_DROPPED_BITS = 16
_CHUNK = 1 << 18
"""Entries at a time: their noise stays in the processor's cache."""


def dithered(values: Tensor, seed: int) -> Tensor:
    """Float32 `values` in bfloat16, each one of its two neighbours there; the same noise for the same seed and shape.

    Unbiased over seeds. Inf and NaN stay what they are.
    """
    flat = values.detach().contiguous().view(-1)
    rounded = torch.empty(flat.shape, dtype=torch.bfloat16, device=flat.device)
    generator = torch.Generator(flat.device).manual_seed(seed)
    noise = torch.empty(min(_CHUNK, len(flat)), dtype=torch.int32, device=flat.device)
    for start in range(0, len(flat), _CHUNK):
        part = flat[start : start + _CHUNK]
        bits = noise[: len(part)].random_(0, 1 << _DROPPED_BITS, generator=generator)
        # the bits of a float are ordered as its magnitude is: a sum of them carries into the bits that are kept
        bits.add_(part.view(torch.int32)).bitwise_and_(-1 << _DROPPED_BITS)
        rounded[start : start + _CHUNK] = bits.view(torch.float32)
    return rounded.view(values.shape)
