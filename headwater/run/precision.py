"""`dtype = "auto"`: what sampler and learner calculate in is chosen on the host that starts the run.

One type for both. What is published is what was trained: a sampler of another type would round it, and sample with a
policy that nobody trained. So a type that is set for one side alone is the other's too. Roles read the choice from
config.toml; a resume keeps it.
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.config.run_config import RunConfig
from headwater.errors import HeadwaterError
from headwater.run.cores import usable_cores
from headwater.run.processes import output_of
from learner.config import Dtype, DtypeChoice

BFLOAT16_MUST_SAVE = 0.2
"""The share of an update's time that bfloat16 has to save before it is taken: its rounding costs some updates."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """GFLOP/s of matrix products on this host, by type, with the threads that each side has."""

    learner: Mapping[str, float]
    sampler: Mapping[str, float]

    def faster(self) -> Dtype:
        """The type with which an update takes less time; sampling and training take about as long in float32."""
        ratios = [side["float32"] / side["bfloat16"] for side in (self.learner, self.sampler)]
        return "bfloat16" if sum(ratios) / len(ratios) <= 1 - BFLOAT16_MUST_SAVE else "float32"

    def __str__(self) -> str:
        sides = (("learner", self.learner), ("sampler", self.sampler))
        shown = (f"{name} {side['float32']:.0f} in float32, {side['bfloat16']:.0f} in bfloat16" for name, side in sides)
        return f"GFLOP/s here: {'; '.join(shown)}"


async def measure_speeds(config: RunConfig) -> Speeds:
    """A tenth of a second of matrix products, in a process that loads torch. Raises HeadwaterError."""
    threads = [str(given or usable_cores()) for given in (config.training.threads, config.engine.threads)]
    try:
        return Speeds(**json.loads(await output_of("learner.dtype_probe", *threads)))
    except subprocess.CalledProcessError as error:
        raise HeadwaterError(
            f"the speed of this host could not be measured ({error.stderr}): set training.dtype and engine.dtype to "
            "float32 or bfloat16"
        ) from error


async def settled(config: RunConfig) -> tuple[RunConfig, list[str]]:
    """The configuration with a type in place of each `auto`, and what to tell people of it. Raises HeadwaterError."""
    both_auto = config.training.dtype == config.engine.dtype == "auto"
    speeds = await measure_speeds(config) if both_auto and config.training.device == "cpu" else None
    return settle(config, speeds)


def settle(config: RunConfig, speeds: Speeds | None) -> tuple[RunConfig, list[str]]:
    """`settled` after the measurement, which only two times `auto` on a CPU needs. Pure."""
    learner, sampler = config.training.dtype, config.engine.dtype
    if learner != "auto" != sampler:
        return config, []
    why = "as was set for one of them"
    if learner != sampler:
        chosen = sampler if learner == "auto" else learner
    elif speeds is not None:
        chosen, why = speeds.faster(), str(speeds)
    else:
        chosen, why = "bfloat16", "the learner is on a GPU"
    return _with_dtypes(config, chosen, chosen), [f"dtype: sampler and learner calculate in {chosen} ({why})"]


def as_recorded(config: RunConfig, recorded: RunConfig) -> RunConfig:
    """What a resume may still call `auto` stays as it was: another host might choose another."""
    learner, sampler = config.training.dtype, config.engine.dtype
    return _with_dtypes(
        config,
        recorded.training.dtype if learner == "auto" else learner,
        recorded.engine.dtype if sampler == "auto" else sampler,
    )


def _with_dtypes(config: RunConfig, learner: DtypeChoice, sampler: DtypeChoice) -> RunConfig:
    training = config.training.model_copy(update={"dtype": learner})
    engine = config.engine.model_copy(update={"dtype": sampler})
    return config.model_copy(update={"training": training, "engine": engine})
