"""Model, optimizer, learning-rate schedule, RNG and `Position` saved and loaded as one atomic unit (invariant 4)."""

import random
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from learner.book.checkpoints import POSITION, CheckpointName, list_checkpoints
from learner.book.incarnation import check_newest
from learner.durable import new_directory, remove_directory
from learner.errors import CheckpointError
from learner.training.engine import DeepSpeedEngine

_TAG = "deepspeed"


def save_checkpoint(directory: Path, engine: DeepSpeedEngine, incarnation: int, position: bytes, keep: int) -> Path:
    """Write a checkpoint and delete all but the newest `keep`. `position` is JSON, taken after the last step.

    Raises Superseded, and leaves nothing, when this incarnation is not the newest once all is written.
    """
    mine = [name.sequence for name, _ in list_checkpoints(directory) if name.incarnation == incarnation]
    target = directory / str(CheckpointName(incarnation, max(mine, default=0) + 1))
    with new_directory(target) as scratch:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # torch's own, on how DeepSpeed calls it
            engine.deepspeed.save_checkpoint(str(scratch), tag=_TAG, save_latest=False)
        torch.save(_rng_state(), scratch / f"rng-{engine.rank}.pt")
        (scratch / POSITION).write_bytes(position)
        # writing takes seconds: one that was superseded meanwhile must not become what a resume begins with
        check_newest(directory, incarnation)
    for _, old in list_checkpoints(directory)[:-keep]:
        remove_directory(old)
    return target


def load_checkpoint(checkpoint: Path, engine: DeepSpeedEngine) -> None:
    """Put model, optimizer, schedule and RNG back as they were saved. Raises CheckpointError."""
    try:
        with tempfile.TemporaryDirectory() as plain:
            # DeepSpeed globs below the path that it is given: `[`, `]`, `*` and `?` in it would find nothing
            link = Path(plain) / "checkpoint"
            link.symlink_to(checkpoint.absolute(), target_is_directory=True)
            loaded, _ = engine.deepspeed.load_checkpoint(str(link), tag=_TAG)
    except (RuntimeError, KeyError, ValueError, AssertionError, OSError) as error:
        raise CheckpointError(_unfit(checkpoint, str(error))) from error
    if loaded is None:
        raise CheckpointError(_unfit(checkpoint, "DeepSpeed found nothing in it"))
    engine.round_weights()
    _restore_rng(torch.load(checkpoint / f"rng-{engine.rank}.pt", weights_only=False))


def _unfit(checkpoint: Path, reason: str) -> str:
    return (
        f"{checkpoint} does not fit this run: {reason}. Model, dtype, zero_stage and number of ranks must be those it "
        "was saved with"
    )


def _rng_state() -> dict[str, Any]:
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def _restore_rng(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
