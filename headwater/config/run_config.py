"""The settings of a run: the tables that the packages own, composed, and those of the front door itself.

A setting without which a run means nothing has no default; every other default stands once, where it is owned.
Reading and merging is `load`'s business.
"""

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from headwater.config.dtypes import check_dtypes
from headwater.errors import ConfigError
from learner.algorithms.registry import ALGORITHMS
from learner.config import Training
from streams.config import EngineConfig, GradingConfig, SamplingConfig
from tasks.config import Data
from wire.kafka.disk import MIN_FREE_BYTES

_NAME = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$"
Name = Annotated[str, Field(pattern=_NAME)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]
GIB = 1 << 30
CREDENTIALS = re.compile("(?<=://)[^/]*@")
"""User and password in a URL: neither may go onto the log."""


class Section(BaseModel):
    """A table of the TOML: frozen, and no key beyond those named."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())


class EvaluationConfig(Section):
    """Held-out evaluation around a run (`demo`, `eval`)."""

    prompts: Count = 64
    samples: Count = 4
    """Answers to each held-out prompt at temperature 1; a greedy one is shown beside."""
    new_template_prompts: Count = 20
    """Of a second set: templates that are never trained on."""
    seed: int = 10_007
    deadline_seconds: Seconds = 1800.0
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
    retention_bytes: Count = 20 * GIB
    """The most that answers, executions, verdicts and trajectories take on the disk of the broker that `up` starts."""
    min_free_bytes: Count = MIN_FREE_BYTES
    """With less left on the broker's disk nothing is admitted."""


class StorageConfig(Section):
    """Where a run's weights and checkpoints are."""

    url: str | None = None
    """A URL that fsspec knows, or a path on a shared file system; each run has a directory of its own below it. Absent:
    the run directory, which other machines do not have."""

    @field_validator("url")
    @classmethod
    def _without_credentials(cls, url: str | None) -> str | None:
        if url is not None and CREDENTIALS.search(url):
            raise ValueError(
                "this goes onto the log, so it may hold no user or password: each machine has those in its environment "
                "(for S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
            )
        return url


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
    storage: StorageConfig = StorageConfig()

    @model_validator(mode="after")
    def _distinct_sources(self) -> "RunConfig":
        names = [source.name for source in self.data]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"two data sources are named {repeated[0]!r}; names must differ")
        return self

    @model_validator(mode="after")
    def _groups_have_a_baseline(self) -> "RunConfig":
        if self.sampling.group_size == 1 and ALGORITHMS[self.training.algorithm].compares_group:
            raise ValueError(
                f"sampling.group_size is 1, but {self.training.algorithm} compares the answers of a group: give 2 or "
                "more"
            )
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
