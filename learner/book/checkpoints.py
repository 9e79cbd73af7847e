"""Which checkpoints there are, and the position in one: all that needs no torch.

    checkpoints/checkpoint-<incarnation>-<sequence>/
        deepspeed/     what DeepSpeed saves, a file a rank
        rng-<rank>.pt
        position.json

Names rise: a higher incarnation is newer, whatever version it resumed at. The directory appears under its
name only when all of it is on the disk, so the newest one that is seen is always complete.
"""

import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from learner.book.position import Position
from learner.errors import CheckpointError

POSITION = "position.json"
_NAME = re.compile(r"checkpoint-(\d{6})-(\d{6})")


class CheckpointName(NamedTuple):
    """Orders checkpoints by age."""

    incarnation: int
    sequence: int

    def __str__(self) -> str:
        return f"checkpoint-{self.incarnation:06d}-{self.sequence:06d}"


def checkpoint_name(name: str) -> CheckpointName | None:
    """The inverse of its text; None for the name of anything else."""
    match = _NAME.fullmatch(name)
    return CheckpointName(int(match[1]), int(match[2])) if match else None


def list_checkpoints(directory: Path) -> list[tuple[CheckpointName, Path]]:
    """All complete checkpoints, oldest first."""
    found = ((checkpoint_name(path.name), path) for path in directory.glob("checkpoint-*"))
    return sorted((name, path) for name, path in found if name is not None)


def newest_checkpoint(directory: Path) -> Path | None:
    """Where a resume begins; None when nothing was saved yet."""
    checkpoints = list_checkpoints(directory)
    return checkpoints[-1][1] if checkpoints else None


def load_position(checkpoint: Path) -> Position:
    """The position alone. Raises CheckpointError."""
    try:
        return msgspec.json.decode((checkpoint / POSITION).read_bytes(), type=Position)
    except (OSError, msgspec.DecodeError) as error:
        raise CheckpointError(f"{checkpoint} has no position that this release reads: {error}") from error
