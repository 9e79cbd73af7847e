"""Looks at every update: what its mismatch is made of, and what a person should know of it. Pure."""

from dataclasses import dataclass

from learner.training.probe import Publication
from learner.training.step import StepResult

PUBLISH_KL_ALARM = 1e-4
"""Nats: beyond it the sampler follows another policy than the one that is trained."""
ENGINE_KL_ALARM = 1e-2
"""Nats: beyond it sampler and learner do not compute the same; bfloat16 on both sides gives a tenth of this."""
FIRST_UPDATES = 5
"""After the warmup: what is wrong with a learning rate shows in these."""
HIGH_STEP_KL, HIGH_CLIP_FRACTION = 0.05, 0.1
"""Of one update. Trust-region practice aims at 0.01 nats and a few per cent."""
LOW_STEP_KL = 1e-7
"""Nats: no update so far has moved the policy more than this."""


@dataclass(frozen=True, slots=True)
class Causes:
    """KL(behaviour ‖ trained) of a step by what it comes from, nats; small differences add up. None: not known yet."""

    engine: float | None = None
    """Sampler and learner compute differently: seen on tokens that the present version sampled."""
    rounding: float | None = None
    """What was published is not what was trained."""
    staleness: float | None = None
    """The rest: older weights sampled the tokens."""


class Watch:
    """Of one learner's life."""

    def __init__(self, warmup_updates: int, snapshot_dtype: str) -> None:
        self._last_first = warmup_updates + FIRST_UPDATES
        self._snapshot_dtype = snapshot_dtype
        self._publication: Publication | None = None
        """The newest: the tokens that are trained on next are sampled with it."""
        self._engine: float | None = None
        self._farthest_step = 0.0

    def causes(self, result: StepResult) -> Causes:
        """Of the mismatch of a step; asked before what follows from it is published."""
        if self._publication is None or not result.applied:
            return Causes()
        rounding = self._publication.kl
        if result.fresh_mismatch_kl is not None:
            self._engine = max(0.0, result.fresh_mismatch_kl - rounding)
        if self._engine is None:
            return Causes(rounding=rounding)
        return Causes(self._engine, rounding, max(0.0, result.mismatch_kl - self._engine - rounding))

    def published(self, publication: Publication) -> list[str]:
        """Take in what was published; what is wrong with it."""
        self._publication = publication
        if publication.kl <= PUBLISH_KL_ALARM:
            return []
        return [
            f"what is sampled with is not what was trained: KL(published ‖ trained) is {publication.kl:.1e} nats, "
            f"above {PUBLISH_KL_ALARM:.0e}; snapshots are {self._snapshot_dtype} (training.publish_dtype)"
        ]

    def update(self, version: int, result: StepResult, causes: Causes, publication: Publication | None) -> list[str]:
        """What a person should know of an applied update that made `version`."""
        warnings: list[str] = []
        if causes.engine is not None and causes.engine > ENGINE_KL_ALARM:
            warnings.append(
                f"sampler and learner disagree on the same weights by {causes.engine:.1e} nats (KL): compare "
                "engine.dtype with training.dtype, and the two libraries"
            )
        if version > self._last_first:
            return warnings
        rate = f"learning_rate {result.learning_rate:.1e}"
        step_kl = publication.step_kl if publication is not None else None
        if result.clip_fraction > HIGH_CLIP_FRACTION:
            warnings.append(f"{rate} looks too high: {result.clip_fraction:.0%} of the tokens were clipped")
        if step_kl is not None:
            self._farthest_step = max(self._farthest_step, step_kl)
            if step_kl > HIGH_STEP_KL:
                warnings.append(f"{rate} looks too high: one update moved the policy by {step_kl:.2f} nats (KL)")
        if version == self._last_first and self._farthest_step < LOW_STEP_KL:
            share = publication.changed if publication is not None else None
            changed = "" if share is None else f", {share:.2%} of the published entries changed"
            warnings.append(
                f"nothing moves: no update so far changed the published policy by {LOW_STEP_KL:.0e} nats{changed}; "
                f"{rate} is too low for {self._snapshot_dtype}, or groups have no spread of rewards"
            )
        return warnings
