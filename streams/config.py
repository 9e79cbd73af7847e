"""Tables of a run's TOML that this package reads: how answers are sampled, and where they are judged."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]
Dtype = Literal["float32", "bfloat16"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SamplingConfig(_Section):
    """How answers are drawn."""

    group_size: Count
    """Answers to one prompt."""
    max_new_tokens: Count
    temperature: Annotated[float, Field(gt=0, le=4)] = 1.0
    stop: tuple[str, ...] = ()
    """An answer also ends with the token that completes one of these texts."""
    deadline_seconds: Seconds = 900.0
    """From a group's admission to its end."""


class EngineConfig(_Section):
    """What samples the answers."""

    kind: Literal["transformers", "recorded"] = "transformers"
    workers: Count = 1
    """Rollout worker processes."""
    device: Literal["cpu", "cuda"] = "cpu"
    dtype: Dtype | Literal["auto"] = "auto"
    threads: Annotated[int, Field(ge=0)] = 0
    """CPU threads of one rollout worker; 0: as many as cores."""
    max_batch: Count = 32
    """Answers sampled side by side."""
    chat_template: str | None = None
    """Jinja text, or the path of a file of it: goes before the tokenizer's own."""
    recorded_answers: Path | None = None
    """`recorded`: a file of answers (for tests)."""

    @model_validator(mode="after")
    def _has_answers(self) -> "EngineConfig":
        if self.kind == "recorded" and self.recorded_answers is None:
            raise ValueError("engine `recorded` needs `recorded_answers`, the file of answers")
        if self.kind != "recorded" and self.recorded_answers is not None:
            raise ValueError("`recorded_answers` has no effect with another engine than `recorded`")
        return self


class GradingConfig(_Section):
    """Where answers are judged."""

    sandbox_workers: Count = 1
    """Sandbox worker processes."""
    allow_unenforced: tuple[str, ...] = ()
    """Limits that this host need not be able to enforce, by the names that `headwater doctor` gives them."""
