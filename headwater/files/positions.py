"""The learner's newest saved position, read without loading torch."""

import msgspec

from headwater.errors import RunDirectoryError
from headwater.files.run_directory import RunDirectory
from learner.book.position import Position


def newest_position(directory: RunDirectory) -> Position | None:
    """None when nothing was saved yet. Checkpoints' names sort by age."""
    found = sorted(directory.checkpoints.glob("checkpoint-*/position.json"))
    if not found:
        return None
    try:
        return msgspec.json.decode(found[-1].read_bytes(), type=Position)
    except msgspec.DecodeError as error:
        raise RunDirectoryError(f"{found[-1]} is no position that this release reads: {error}") from error
