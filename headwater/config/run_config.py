"""The settings of a run, as pydantic models. Reading and merging them is `config_load`'s business.

A setting without which a run means nothing has no default; every other default is here, once.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headwater.config.dtypes import check_dtypes
from headwater.errors import ConfigError
from learner.config import DtypeChoice, Training
from tasks.config import Data

_NAME = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$"
Name = Annotated[str, Field(pattern=_NAME)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
GIB = 1 << 30


class Section(BaseModel):
    """A table of the TOML: frozen, and no key beyond those named."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class SamplingConfig(Section):
    """How answers are drawn."""

    group_size: Count
    """Answers to one prompt."""
    max_new_tokens: Count
    temperature: Annotated[float, Field(gt=0, le=4)] = 1.0
    stop: tuple[str, ...] = ()
    """An answer also ends with the token that completes one of these texts."""
    deadline_seconds: Positive = 900.0
    """From a group's admission to its end."""


class EngineConfig(Section):
    """What samples the answers."""

    kind: Literal["transformers", "recorded"] = "transformers"
    workers: Count = 1
    """Rollout worker processes."""
    device: Literal["cpu", "cuda"] = "cpu"
    dtype: DtypeChoice = "auto"
    threads: Annotated[int, Field(ge=0)] = 0
    """CPU threads of one rollout worker; 0: as many as cores."""
    max_batch: Count = 32
    """Answers sampled side by side."""
    recorded_answers: Path | None = None
    """`recorded`: a file of answers (for tests)."""

    @model_validator(mode="after")
    def _has_answers(self) -> "EngineConfig":
        if self.kind == "recorded" and self.recorded_answers is None:
            raise ValueError("engine `recorded` needs `recorded_answers`, the file of answers")
        if self.kind != "recorded" and self.recorded_answers is not None:
            raise ValueError("`recorded_answers` has no effect with another engine than `recorded`")
        return self


class GradingConfig(Section):
    """Where answers are judged."""

    sandbox_workers: Count = 1
    """Sandbox worker processes."""
    allow_unenforced: tuple[str, ...] = ()
    """Limits that this host need not be able to enforce, by the names that `headwater doctor` gives them."""


class EvaluationConfig(Section):
    """Held-out evaluation around a run (`demo`, `eval`)."""

    prompts: Count = 64
    samples: Count = 4
    """Answers to each held-out prompt at temperature 1; a greedy one is shown beside."""
    new_template_prompts: Count = 20
    """Of a second set: templates that are never trained on."""
    seed: int = 10_007
    deadline_seconds: Positive = 1800.0
    """From an evaluation group's admission to its end."""
    max_open_groups: Count = 64
    """Evaluation groups admitted at once: the bound of their own (invariant 6)."""
    before_and_after: bool = False
    """`up` measures the held-out sets before the first update and after the last."""


class BrokerConfig(Section):
    """Topics, and the broker that `up` starts when it is given none."""

    prefix: str = "headwater."
    partitions: Count = 4
    replication: Count = 1
    transactions: bool = False
    """True on Apache Kafka: a transactional scheduler."""
    memory_limit_bytes: Count = 4 * GIB
    """The bundled broker's log lives in memory and only grows: the run stops cleanly before this."""


class RunConfig(Section):
    """Everything a run needs. See `headwater init` for the commented TOML."""

    name: Name
    model: str
    """`smollm2-135m-instruct`, a Hugging Face model directory, or a hub id."""
    seed: int = 0
    data: Annotated[tuple[Data, ...], Field(min_length=1)]
    training: Training
    sampling: SamplingConfig
    engine: EngineConfig = EngineConfig()
    grading: GradingConfig = GradingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    broker: BrokerConfig = BrokerConfig()

    @model_validator(mode="after")
    def _distinct_sources(self) -> "RunConfig":
        names = [source.name for source in self.data]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"two data sources are named {repeated[0]!r}; names must differ")
        return self

    @model_validator(mode="after")
    def _same_numbers(self) -> "RunConfig":
        _ = self.dtype_warnings
        return self

    @property
    def dtype_warnings(self) -> list[str]:
        """What to expect where sampler, snapshots and learner differ in type. Raises ValueError where they must not."""
        return check_dtypes(self.training, self.engine.dtype) if self.engine.kind == "transformers" else []


def check_name(name: str) -> None:
    """Raise ConfigError for what cannot be the name of a run."""
    if not re.fullmatch(_NAME, name):
        raise ConfigError(f"{name!r} cannot name a run: letters, digits, `.`, `_` and `-`, 64 at most")
