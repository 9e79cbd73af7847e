"""What every role is given when its process starts."""

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path

from headwater.config.run_config import RunConfig
from headwater.errors import ConfigError
from headwater.files.run_directory import RunDirectory
from headwater.run.joining import config_of
from schemas import RunStarted
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleContext:
    """One role's process: where it is, whom it speaks to, and when it is to end."""

    name: str
    """Its name in the run directory, also when several of a kind run: `rollout-2`."""
    directory: RunDirectory
    settings: KafkaSettings
    metrics: Metrics
    stop: asyncio.Event
    joined: RunStarted | None = None
    """Its run; None: it works for whatever comes."""
    allow_unenforced: tuple[str, ...] = ()
    """Of the sandbox: limits that this host need not enforce."""

    @property
    def instance_id(self) -> str:
        """The same after a restart on this host: the consumer group keeps its partitions."""
        return f"{self.name}-{socket.gethostname()}"

    @property
    def state(self) -> Path:
        """The role's own directory, made if need be."""
        path = self.directory.state(self.name)
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def run(self) -> RunStarted:
        """What the log says of the run. Raises ConfigError for a process that was not told which one."""
        if self.joined is None:
            raise ConfigError(f"the role {self.name} needs to know its run: give --run NAME")
        return self.joined

    @property
    def config(self) -> RunConfig:
        """The run's settings. Raises ConfigError for those of another release."""
        return config_of(self.run)
