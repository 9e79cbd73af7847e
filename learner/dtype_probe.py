"""How fast this host multiplies matrices in float32 and in bfloat16: what `dtype = "auto"` is chosen by.

    python -m learner.dtype_probe LEARNER_THREADS SAMPLER_THREADS

prints JSON, `{"learner": {"float32": GFLOP/s, "bfloat16": …}, "sampler": {…}}`. In a process of its own, for it loads
torch. It has to be measured: with avx512_bf16 bfloat16 is twice as fast as float32, elsewhere half as fast.
"""

import json
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

HIDDEN, INTERMEDIATE = 576, 1536
"""The widest layer of SmolLM2-135M: large enough for the ratio of any larger model."""
TRAINED_TOKENS = 480
"""Rows of a forward and backward pass: a short micro-batch."""
SAMPLED_ROWS = 64
"""Rows of a decoding step: answers sampled side by side."""
ROUNDS = 3
"""The fastest counts: what else runs here makes a round slow, never fast."""


def probe(learner_threads: int, sampler_threads: int) -> dict[str, dict[str, float]]:
    """GFLOP/s by side and type. Takes some 100 ms and sets this process's threads."""
    speeds: dict[str, dict[str, float]] = {"learner": {}, "sampler": {}}
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        torch.set_num_threads(learner_threads)
        speeds["learner"][name] = _training_speed(dtype)
        torch.set_num_threads(sampler_threads)
        speeds["sampler"][name] = _sampling_speed(dtype)
    return speeds


def _training_speed(dtype: torch.dtype) -> float:
    layer = nn.Linear(HIDDEN, INTERMEDIATE, bias=False, dtype=dtype)
    hidden = torch.ones(TRAINED_TOKENS, HIDDEN, dtype=dtype, requires_grad=True)
    gradient = torch.ones(TRAINED_TOKENS, INTERMEDIATE, dtype=dtype)
    # forward, gradient of the input, gradient of the weights
    return 3 * _speed(lambda: layer(hidden).backward(gradient), TRAINED_TOKENS)


@torch.no_grad()
def _sampling_speed(dtype: torch.dtype) -> float:
    layer = nn.Linear(HIDDEN, INTERMEDIATE, bias=False, dtype=dtype)
    hidden = torch.ones(SAMPLED_ROWS, HIDDEN, dtype=dtype)
    return _speed(lambda: layer(hidden), SAMPLED_ROWS)


def _speed(work: Callable[[], object], rows: int) -> float:
    """GFLOP/s of the fastest round, one product of `rows` rows a call; the first call also makes caches."""
    work()
    fastest = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - start)
    return 2 * rows * HIDDEN * INTERMEDIATE / fastest / 1e9


if __name__ == "__main__":
    print(json.dumps(probe(*(int(argument) for argument in sys.argv[1:]))))
