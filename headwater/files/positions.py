"""Where the learner's work of a run is, and its newest saved position, read without loading torch."""

import msgspec

from headwater.config.load import load_config
from headwater.config.run_config import RunConfig
from headwater.errors import RunDirectoryError
from headwater.files.run_directory import RunDirectory
from learner.book.position import Position
from learner.book.stored import Stored, stored_at
from learner.errors import LearnerError
from wire.errors import WireError
from wire.uris import uri_of


def storage_uri(config: RunConfig, directory: RunDirectory) -> str:
    """The directory of the run's weights and checkpoints: its own below `storage.url`, else the run directory."""
    if config.storage.url is None:
        return uri_of(directory.path)
    return f"{uri_of(config.storage.url).rstrip('/')}/{directory.run_id()}"


def stored_of(directory: RunDirectory) -> Stored | None:
    """What the run keeps elsewhere; None: all of it is in its directory."""
    if not directory.config.is_file():
        return None
    return stored_at(storage_uri(load_config(directory.config, {}), directory), directory.path)


def newest_position(directory: RunDirectory) -> Position | None:
    """None when nothing was saved yet. Raises RunDirectoryError for one that cannot be read."""
    stored = stored_of(directory)
    if stored is not None:
        try:
            return stored.newest_position()
        except (WireError, LearnerError) as error:
            raise RunDirectoryError(str(error)) from error
    # their names sort by age
    found = sorted(directory.checkpoints.glob("checkpoint-*/position.json"))
    if not found:
        return None
    try:
        return msgspec.json.decode(found[-1].read_bytes(), type=Position)
    except msgspec.DecodeError as error:
        raise RunDirectoryError(f"{found[-1]} is no position that this release reads: {error}") from error
