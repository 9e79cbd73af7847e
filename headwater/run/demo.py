"""The demo's configuration: settings with which two cores see a rise within ten minutes of training."""

from collections.abc import Sequence
from typing import Any

from headwater.config.load import build_config
from headwater.config.run_config import RunConfig

STOP = ("```\n",)
"""An answer is over with its code block."""
_SETTINGS: dict[str, Any] = {
    "data": [{"kind": "functions", "count": 4096}],
    "training": {
        "batch_groups": 4,
        # on policy: sampler and learner take turns, each with all cores
        "max_staleness": 0,
        "max_updates": 16,
        "max_seconds": 600.0,
        "learning_rate": 2e-5,
        "warmup_updates": 3,
    },
    "sampling": {"group_size": 8, "max_new_tokens": 62, "stop": list(STOP)},
    "engine": {"max_batch": 64},
    "evaluation": {"before_and_after": True},
}


def demo_config(
    *, model: str, seed: int, name: str, max_updates: int | None = None, overrides: Sequence[str] = ()
) -> RunConfig:
    """The demo with these choices. Raises ConfigError for an override that is no setting."""
    settings = {**_SETTINGS, "name": name, "model": model, "seed": seed}
    if max_updates is not None:
        settings["training"] = {**_SETTINGS["training"], "max_updates": max_updates}
    return build_config(settings, overrides=overrides, origin="demo")
