"""What a role needs of its run, on the log: any machine can join with a broker's address and a name."""

from typing import Any

from schemas.base import Event
from schemas.weights import Snapshot


class RunStarted(Event, frozen=True, kw_only=True, tag="run_started"):
    """A run as `up` started it, or started it again: of a run id the newest is all a reader needs."""

    name: str
    config: dict[str, Any]
    """The run's settings, section by section as in its TOML; no credentials."""
    partitions: int
    """Of every topic on which a group meets."""
    storage: str
    """URI of the directory that holds the run's `weights/` and `checkpoints/`."""
    model: Snapshot | None = None
    """Where training starts, in the storage; None: each machine has it by the name in `config`."""
    started_at: float
