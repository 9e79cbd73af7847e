"""What every role is given when its process starts."""

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path

from headwater.config.load import load_config
from headwater.config.run_config import RunConfig
from headwater.errors import ConfigError
from headwater.files.run_directory import RunDirectory
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

    def config(self) -> RunConfig:
        """The run's settings. Raises ConfigError when the run directory has none."""
        if not self.directory.config.is_file():
            raise ConfigError(
                f"the role {self.name} needs the run's settings: {self.directory.config} is not there. On another "
                "machine, copy the run's config.toml into the run directory first"
            )
        return load_config(self.directory.config, {})
