"""Directories that exist whole or not at all, also after the power fails."""

import errno
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_WRITING = ".writing-"
_DELETING = ".deleting-"
_NOTHING_LEFT_BYTES = 1 << 20


def fsync_path(path: Path) -> None:
    """Force a file's bytes, or a directory's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def new_directory(target: Path) -> Generator[Path]:
    """Give a directory to fill; it becomes `target` in one step, when all in it is on the disk.

    After a crash in between, `target` does not exist, and the rest is under a name that `remove_leftovers` knows.
    `target` must not exist. Raises OSError (ENOSPC) for whatever went wrong on a disk that is full.
    """
    scratch = target.with_name(_WRITING + target.name)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        yield scratch
    except Exception as error:  # torch says of a full disk only that a position is unexpected
        if shutil.disk_usage(scratch).free < _NOTHING_LEFT_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target)) from error
        raise
    for parent, _, files in os.walk(scratch):
        for name in files:
            fsync_path(Path(parent, name))
        fsync_path(Path(parent))
    scratch.rename(target)
    fsync_path(target.parent)


def remove_directory(directory: Path) -> None:
    """Delete a directory so that no part of it is ever seen under its name."""
    doomed = directory.with_name(_DELETING + directory.name)
    directory.rename(doomed)
    shutil.rmtree(doomed)


def remove_leftovers(parent: Path) -> None:
    """Delete what a process left half written or half deleted. Only for the one who writes there."""
    for leftover in [*parent.glob(_WRITING + "*"), *parent.glob(_DELETING + "*")]:
        shutil.rmtree(leftover, ignore_errors=True)
