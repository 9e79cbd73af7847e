"""One optimizer step over the micro-batches of one batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from learner.algorithms.base import Algorithm
from learner.algorithms.kl import k3
from learner.algorithms.losses import LOG_RATIO_BOUND, log_ratio, token_mean
from learner.errors import NonFiniteWeights
from learner.training.batch import PACKED_ROW_TOKENS, MicroBatch, collate, micro_batches, pack
from learner.training.engine import DeepSpeedEngine
from learner.training.memory import give_back_memory
from learner.training.pace import Pace
from learner.training.samples import Sample


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an update was like. Means are over its trainable tokens."""

    applied: bool
    """False: something was not finite; weights, moments and learning rate are as before."""
    loss: float
    grad_norm: float
    """Before clipping. Inf when the step was not applied."""
    mismatch_kl: float
    """KL(behaviour ‖ trained policy), k3, nats: staleness, and sampler and trainer disagreeing."""
    fresh_mismatch_kl: float | None
    """The same over the tokens that the present weights sampled: without staleness. None: there are none."""
    entropy: float
    ratio_mean: float
    ratio_min: float
    ratio_max: float
    clip_fraction: float
    tokens: int
    """All tokens of the sequences, without padding, prompts counted for each answer."""
    trainable_tokens: int
    micro_batches: int
    longest_micro_batch_seconds: float = field(compare=False)
    """What a stop had to wait for at most."""
    learning_rate: float


class StepAbandoned(Exception):
    """The process is to end: the gradients so far are thrown away, the weights are as before."""


def optimizer_step(
    engine: DeepSpeedEngine,
    samples: Sequence[Sample],
    algorithm: Algorithm,
    pace: Pace,
    abandoned: Callable[[], bool] = lambda: False,
) -> StepResult:
    """Train on `samples` once. However `pace` has them cut into micro-batches, the step is the same.

    Raises NonFiniteWeights when a finite gradient made weights that are not: then this process must end without
    keeping anything. Raises StepAbandoned before a micro-batch when `abandoned()`: no further step may follow, for
    gradients are left behind.
    """
    pace.longest_seconds = 0.0
    denominator = float(sum(sample.trainable_tokens for sample in samples))
    rows = pack(samples, min(PACKED_ROW_TOKENS, pace.tokens) if engine.shares_prompts else 0)
    totals = _Totals()
    learning_rate = float(engine.deepspeed.get_lr()[0])
    for part in micro_batches(rows, lambda: pace.tokens):
        if abandoned():
            raise StepAbandoned
        batch = collate(part)
        with pace.timed(batch.input_ids.numel()):
            _accumulate(engine, batch, algorithm, denominator, totals)
        totals.micro_batches += 1
    give_back_memory()
    engine.deepspeed.step()
    applied = bool(engine.deepspeed.was_step_applied())
    if applied:
        engine.round_weights()
    if applied and not engine.weights_finite():
        raise NonFiniteWeights(
            "a step with finite gradients left weights that are not finite: nothing of it was kept; the run can go on "
            "from its last checkpoint, with a lower learning_rate if it happens again"
        )
    return StepResult(
        applied=applied,
        loss=totals.loss,
        grad_norm=float(engine.deepspeed.get_global_grad_norm()),
        mismatch_kl=totals.mismatch_kl,
        fresh_mismatch_kl=totals.fresh_mismatch / totals.fresh if totals.fresh else None,
        entropy=totals.entropy,
        ratio_mean=totals.ratio,
        ratio_min=totals.ratio_min,
        ratio_max=totals.ratio_max,
        clip_fraction=totals.clipped,
        tokens=sum(len(sample.token_ids) for sample in samples),
        trainable_tokens=int(denominator),
        micro_batches=totals.micro_batches,
        longest_micro_batch_seconds=pace.longest_seconds,
        learning_rate=learning_rate,
    )


@dataclass(slots=True)
class _Totals:
    loss: float = 0.0
    mismatch_kl: float = 0.0
    fresh_mismatch: float = 0.0
    fresh: int = 0
    entropy: float = 0.0
    micro_batches: int = 0
    ratio: float = 0.0
    ratio_min: float = float("inf")
    ratio_max: float = 0.0
    clipped: float = 0.0


def _accumulate(
    engine: DeepSpeedEngine, batch: MicroBatch, algorithm: Algorithm, denominator: float, totals: _Totals
) -> None:
    logp, entropy = engine.deepspeed(*engine.policy.of(batch, engine.device))
    behaviour, advantages = batch.behaviour_logprobs.to(engine.device), batch.advantages.to(engine.device)
    valid = torch.ones_like(logp, dtype=torch.bool)
    token_loss = algorithm.token_losses(logp, behaviour, advantages, valid)
    loss = token_mean(token_loss, valid, denominator)
    # a bounded ratio can hide a log-prob that is not finite; then make the gradient say it, so that every
    # rank's step is refused at the same place
    healthy = bool(torch.isfinite(logp.detach()).all()) and bool(torch.isfinite(loss.detach()))
    # DeepSpeed averages over ranks; this is a sum
    engine.deepspeed.backward((loss if healthy else logp.sum() * torch.nan) * engine.world_size, scale_wrt_gas=False)
    with torch.no_grad():
        logp = logp.detach()
        ratio = log_ratio(logp, behaviour, valid).exp()
        share = 1 / denominator
        totals.loss += loss.item()
        mismatch = k3(behaviour, logp, valid, LOG_RATIO_BOUND)
        totals.mismatch_kl += share * float(mismatch.sum())
        fresh = batch.ages.to(engine.device) == 0
        totals.fresh_mismatch += float(mismatch[fresh].sum())
        totals.fresh += int(fresh.sum())
        totals.entropy += share * float(entropy.sum())
        totals.ratio += share * float(ratio.sum())
        totals.ratio_min = min(totals.ratio_min, float(ratio.min()))
        totals.ratio_max = max(totals.ratio_max, float(ratio.max()))
        totals.clipped += share * float(algorithm.outside(ratio, advantages).sum())
