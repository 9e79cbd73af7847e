"""What a publication is worth: the published bytes, read back as a sampler reads them, on a few fixed tokens.

Three figures for each version: how far the published policy is from the trained one (the rounding), how far from the
one published before (the step, as a sampler sees it), and which share of the published entries changed. Costs one load
of the model and two forward passes over at most `PROBE_TOKENS` tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from learner.algorithms.kl import exact
from learner.training.batch import collate, pack
from learner.training.engine import DeepSpeedEngine
from learner.training.policy import Policy, load_policy, parity_samples
from learner.training.samples import Sample

PROBE_TOKENS = 128
"""Predicted tokens of the probe: at each the log-probs of the whole vocabulary are compared."""
PROBE_SEQUENCE_TOKENS = 1024
"""Of all sequences of the probe; a single longer one is taken all the same."""


@dataclass(frozen=True, slots=True)
class Publication:
    """KLs are exact over the vocabulary, nats, the mean over the probe's tokens."""

    kl: float
    """KL(published ‖ trained): 0 when what was trained is what is sampled with."""
    step_kl: float | None
    """KL(published before ‖ published); None for the first of a life."""
    changed: float | None
    """Share of the published entries that differ from those published before; None for the first of a life."""


class Probe:
    """The fixed tokens: arbitrary ones until the first batch comes, then some of its answers."""

    def __init__(self, engine: DeepSpeedEngine) -> None:
        self._engine = engine
        self._samples = parity_samples(engine.vocabulary)
        self._settled = False
        self._before: tuple[Path, Tensor] | None = None
        """The snapshot published last, and its log-probs."""

    @torch.no_grad()
    def settle(self, samples: Sequence[Sample]) -> None:
        """Keep some answers of the first batch, from many groups; every later batch changes nothing."""
        if self._settled:
            return
        self._settled = True
        self._samples = _some_of(samples)
        if self._before is not None:
            directory, _ = self._before
            self._before = (directory, self._published(directory))

    @torch.no_grad()
    def measure(self, directory: Path) -> Publication:
        """Compare the snapshot in `directory` with the engine's weights and with the snapshot before."""
        published = self._published(directory)
        kl = float(exact(published, self._logprobs(self._engine.policy)).mean())
        before, self._before = self._before, (directory, published)
        if before is None:
            return Publication(kl, None, None)
        return Publication(kl, float(exact(before[1], published).mean()), changed_share(before[0], directory))

    def _published(self, directory: Path) -> Tensor:
        dtype = next(self._engine.policy.parameters()).dtype
        return self._logprobs(load_policy(directory, dtype, self._engine.device))

    def _logprobs(self, policy: Policy) -> Tensor:
        """[tokens, vocabulary], float32."""
        # the module itself: DeepSpeed's own forward expects a backward
        return policy(*policy.of(collate(pack(self._samples, 0)), self._engine.device), whole=True)


def _some_of(samples: Sequence[Sample]) -> list[Sample]:
    kept = [min(samples, key=lambda sample: len(sample.token_ids))]
    for sample in samples[:: max(1, len(samples) // 8)]:
        wanted = [*kept, sample]
        if (
            sum(each.trainable_tokens for each in wanted) <= PROBE_TOKENS
            and sum(len(each.token_ids) for each in wanted) <= PROBE_SEQUENCE_TOKENS
        ):
            kept = wanted
    return kept


def changed_share(before: Path, now: Path) -> float:
    """Share of the entries of a snapshot that are not what they were in another one of the same model."""
    changed = total = 0
    for (name, old), (same, new) in zip(_tensors(before), _tensors(now), strict=True):
        assert name == same, f"{before} and {now} are not of one model: {name}, {same}"
        changed += int((old != new).sum())
        total += new.numel()
    return changed / total


def _tensors(directory: Path) -> Iterator[tuple[str, Tensor]]:
    for path in sorted(directory.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in sorted(file.keys()):
                yield name, file.get_tensor(name)
