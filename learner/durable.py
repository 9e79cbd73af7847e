"""Directories that exist whole or not at all, also after the power fails."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_WRITING = ".writing-"
_DELETING = ".deleting-"


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
    `target` must not exist.
    """
    scratch = target.with_name(_WRITING + target.name)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    yield scratch
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
