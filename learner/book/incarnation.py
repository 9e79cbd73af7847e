"""A learner's life, numbered: taken by making a file that must not exist (invariant 5).

The file system decides between two that start at once. A learner whose number is no longer the newest stops.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from learner.durable import fsync_path
from learner.errors import Superseded

_PREFIX = "incarnation-"


def newest_incarnation(checkpoints: Path) -> int:
    """The highest number taken in this directory; 0 when there is none (0 is `eval`'s, without a learner)."""
    return newest_of(path.name for path in checkpoints.glob(_PREFIX + "*"))


def newest_of(names: Iterable[str]) -> int:
    """The same, of the names of what is in a directory."""
    numbers = (name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def take_incarnation(checkpoints: Path, above: int = 0) -> int:
    """Take the lowest number over all taken here and over `above` (what the stream has seen)."""
    checkpoints.mkdir(parents=True, exist_ok=True)
    number = max(newest_incarnation(checkpoints), above) + 1
    while True:
        path = checkpoints / f"{_PREFIX}{number}"
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            number += 1
            continue
        os.close(descriptor)
        fsync_path(checkpoints)
        return number


def check_newest(checkpoints: Path, incarnation: int) -> None:
    """Raise Superseded when another learner has taken a higher number."""
    newest = newest_incarnation(checkpoints)
    if newest > incarnation:
        raise superseded(incarnation, newest, str(checkpoints))


def superseded(incarnation: int, newest: int, where: str) -> Superseded:
    """The error of a learner that is not the newest any more."""
    return Superseded(
        f"this learner is incarnation {incarnation} and has stopped: incarnation {newest} has started in {where}. One "
        "run has one learner; if the other was a mistake, stop it and resume the run"
    )
