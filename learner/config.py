"""What a learner is told: the run's section `[training]`, and where the run is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from learner.algorithms.registry import ALGORITHMS
from learner.book.stored import Stored

Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Dtype = Literal["float32", "bfloat16"]
DtypeChoice = Dtype | Literal["auto"]


class Training(BaseModel):
    """What the learner does with a batch, and when the run is over: a table of the run's TOML."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    batch_groups: Count
    """B: groups an update."""
    max_staleness: NotNegative
    """η: updates that a group's oldest token may lag behind."""
    max_updates: Count
    max_seconds: Positive | None = None
    """Of training, over all resumes: where they are not enough for another update, the run ends as at `max_updates`."""
    learning_rate: Positive
    warmup_updates: NotNegative = 0
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    algorithm: str = "grpo"
    """One of `learner.algorithms.registry`: advantages, loss, correction."""
    clip_low: Positive = 0.2
    clip_high: Positive = 0.28
    """The ratio against the behaviour policy stays in [1 − clip_low, 1 + clip_high]."""
    max_grad_norm: Positive = 1.0
    micro_batch_tokens: Count = 4096
    """Padded tokens of one forward and backward pass at most; fewer where they would take more than a few seconds. A
    longer sequence goes alone."""
    zero_stage: Literal[1, 2, 3] = 1
    """DeepSpeed ZeRO. Not 0: its step would not refuse a NaN."""
    dtype: DtypeChoice = "auto"
    """Of weights and activations; the optimizer's master weights and moments are float32 either way. `auto`: the faster
    on the host that starts the run, for sampler and learner alike; a learner itself is told which."""
    publish_dtype: Dtype | None = None
    """Of the snapshots that are sampled with; absent: `dtype`, so that what is published is what was trained."""
    device: Literal["cpu", "cuda"] = "cpu"
    threads: NotNegative = 0
    """CPU threads; 0: as many as cores. A learner itself is told how many."""
    checkpoint_every_updates: Count = 5
    keep_checkpoints: Count = 2
    snapshot_every_updates: Count = 1
    keep_snapshots: Count = 4

    @field_validator("algorithm")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in ALGORITHMS:
            raise ValueError(f"there is no algorithm {name!r}, but: {', '.join(sorted(ALGORITHMS))}")
        return name

    @model_validator(mode="after")
    def _fresh_enough(self) -> "Training":
        if self.snapshot_every_updates > self.max_staleness + 1:
            raise ValueError(
                f"snapshot_every_updates ({self.snapshot_every_updates}) is above max_staleness + 1 "
                f"({self.max_staleness + 1}): every group would be stale before new weights are out"
            )
        return self

    @property
    def snapshot_dtype(self) -> DtypeChoice:
        """The type of the published weights."""
        return self.publish_dtype or self.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerConfig:
    """One learner: its section of the run's settings, and what the run as a whole decides."""

    run_id: str
    run_directory: Path
    """Holds `checkpoints/`, `weights/`, `metrics.jsonl` and `ledger.jsonl`, all written by the learner alone."""
    stored: Stored | None = None
    """Where checkpoints and snapshots are copied to and a resume begins; None: the run directory itself."""
    model: str
    """What the stream calls the weights."""
    model_directory: Path
    """The Hugging Face directory where training starts."""
    partitions: int
    """Of `trajectories`."""
    seed: int
    training: Training

    @property
    def checkpoints(self) -> Path:
        """Checkpoints and incarnations."""
        return self.run_directory / "checkpoints"

    @property
    def weights(self) -> Path:
        """Published snapshots."""
        return self.run_directory / "weights"
