"""What a learner is told."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerConfig:
    """One learner's settings; the run configuration gives every one of them."""

    run_id: str
    run_directory: Path
    """Holds `checkpoints/`, `weights/`, `metrics.jsonl` and `ledger.jsonl`, all written by the learner alone."""
    model_directory: Path
    """The Hugging Face directory where training starts."""
    partitions: int
    """Of `trajectories`."""

    batch_groups: int
    """B: groups an update."""
    max_staleness: int
    """η: updates that a group's oldest token may lag."""
    max_updates: int

    learning_rate: float
    warmup_updates: int
    betas: tuple[float, float]
    weight_decay: float
    clip_low: float
    clip_high: float
    max_grad_norm: float

    micro_batch_tokens: int
    """Padded tokens in one forward pass; a longer sequence goes alone."""
    zero_stage: Literal[1, 2, 3]
    dtype: Literal["bfloat16", "float32"]
    """Of weights and activations. The optimizer's master weights and moments are float32 either way."""
    device: Literal["cpu", "cuda"]
    num_threads: int
    seed: int

    checkpoint_every_updates: int
    keep_checkpoints: int
    snapshot_every_updates: int
    keep_snapshots: int

    def __post_init__(self) -> None:
        for name in (
            "batch_groups",
            "max_updates",
            "micro_batch_tokens",
            "num_threads",
            "checkpoint_every_updates",
            "keep_checkpoints",
            "snapshot_every_updates",
            "keep_snapshots",
            "partitions",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.max_staleness < 0 or self.warmup_updates < 0:
            raise ValueError("max_staleness and warmup_updates cannot be negative")
        if self.snapshot_every_updates > self.max_staleness + 1:
            raise ValueError(
                f"snapshot_every_updates is {self.snapshot_every_updates}, but rollouts may lag only max_staleness = "
                f"{self.max_staleness} updates: every group would be stale before new weights are out"
            )
        if self.zero_stage not in (1, 2, 3):
            raise ValueError(f"zero_stage is {self.zero_stage}; it must be 1, 2 or 3 (its step refuses a NaN)")

    @property
    def checkpoints(self) -> Path:
        """Checkpoints and incarnations."""
        return self.run_directory / "checkpoints"

    @property
    def weights(self) -> Path:
        """Published snapshots."""
        return self.run_directory / "weights"
