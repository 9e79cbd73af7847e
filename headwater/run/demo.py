"""The demo's configuration: settings with which two cores see a rise within ten minutes of training."""

from collections.abc import Sequence
from typing import Any

from headwater.config.load import build_config
from headwater.config.run_config import RunConfig
from learner.config import Dtype, DtypeChoice

STOP = ("```\n",)
"""An answer is over with its code block."""
LEARNING_RATE: dict[Dtype, float] = {"float32": 2e-5, "bfloat16": 5e-5}
"""bfloat16 swallows small steps: what the forward pass sees of a weight moves in steps of 1/256 of it."""
_SETTINGS: dict[str, Any] = {
    "data": [{"kind": "functions", "count": 4096}],
    "training": {"batch_groups": 4, "max_staleness": 0, "max_updates": 14, "max_seconds": 600.0, "warmup_updates": 3},
    "sampling": {"group_size": 8, "max_new_tokens": 62, "stop": list(STOP)},
    "evaluation": {"before_and_after": True},
}


def demo_config(
    *,
    model: str,
    seed: int,
    name: str,
    dtype: DtypeChoice = "auto",
    max_updates: int | None = None,
    overrides: Sequence[str] = (),
) -> RunConfig:
    """The demo with these choices; the learning rate goes with the `dtype` of sampler and learner.

    Raises ConfigError for an override that is no setting.
    """
    learning_rate = LEARNING_RATE["float32" if dtype == "auto" else dtype]
    training = {**_SETTINGS["training"], "dtype": dtype, "learning_rate": learning_rate}
    if max_updates is not None:
        training["max_updates"] = max_updates
    own = {"training": training, "engine": {"dtype": dtype}}
    settings = {**_SETTINGS, **own, "name": name, "model": model, "seed": seed}
    return build_config(settings, overrides=overrides, origin="demo")
