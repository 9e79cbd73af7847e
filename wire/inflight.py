"""A journal on disk of what a worker is handling, so that an event that kills it is known (invariant 7).

An event leaves its mark before it is handled and loses it afterwards, whatever came of it; only a
death in between leaves it there. One that is found at the third start in a row has killed two workers
(or was caught in two deaths) and is `poisoned`. Bystanders of a death are told from the culprit by
handling what was found at the second start one at a time (see `suspect`).

It guards against a death of the process, not of the machine: nothing is flushed to the disk itself.
"""

import time
import zlib
from pathlib import Path

import msgspec

from wire.records import Record

DEATHS_TO_POISON = 2
KEEP_SECONDS = 24 * 3600
"""A mark older than this is of an event that another worker has long handled."""


class _Mark(msgspec.Struct):
    topic: str
    partition: int
    offset: int
    deaths: int
    handling: bool


class Journal:
    """One worker's journal in its own directory. Two workers never share one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._marks: dict[str, _Mark] = {}
        for path in directory.glob("*.json"):
            mark = _read(path)
            if mark is None or path.stat().st_mtime < time.time() - KEEP_SECONDS:
                path.unlink()
                continue
            if mark.handling:
                mark.deaths += 1
                mark.handling = False
                self._write(path.stem, mark)
            self._marks[path.stem] = mark

    def suspect(self, record: Record) -> bool:
        """Was it being handled when the worker died? Then it must be handled alone."""
        return bool(self._marks) and _name(record) in self._marks

    def begin(self, record: Record) -> int:
        """Note that it is about to be handled; returns how many workers' deaths it has been part of."""
        name = _name(record)
        mark = self._marks.get(name) or _Mark(record.topic, record.partition, record.offset, 0, True)
        mark.handling = True
        self._write(name, mark)
        return mark.deaths

    def end(self, record: Record) -> None:
        """It is done with, or given back: no death can be laid to it any more."""
        name = _name(record)
        self._marks.pop(name, None)
        (self._directory / f"{name}.json").unlink(missing_ok=True)

    def _write(self, name: str, mark: _Mark) -> None:
        (self._directory / f"{name}.json").write_bytes(msgspec.json.encode(mark))


def _name(record: Record) -> str:
    # with its content: on a new log the same offset is another event
    return f"{record.topic}-{record.partition}-{record.offset}-{zlib.crc32(record.value):08x}"


def _read(path: Path) -> _Mark | None:
    """None for one cut short by the death it should tell of: its event is then handled as new."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Mark)
    except msgspec.DecodeError:
        return None
