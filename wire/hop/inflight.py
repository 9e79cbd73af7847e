"""A journal on disk of what a worker is handling, so that an event that kills it is known (invariant 7).

An event leaves its mark before it is handled and loses it afterwards, whatever came of it; only a
death in between leaves it there. One that is found at the third start in a row has killed two workers
(or was caught in two deaths) and is `poisoned`. Bystanders of a death are told from the culprit by
handling what was found at the second start one at a time (see `suspect`).

It guards against a death of the process, not of the machine: marks are written into a mapped file, which
outlives the process without a system call an event (a file for each mark took most of a hop's time).
"""

import mmap
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from wire.kafka.records import Record

DEATHS_TO_POISON = 2
KEEP_SECONDS = 24 * 3600
"""A mark older than this is of an event that another worker has long handled."""
FILE_NAME = "marks"
SLOT_BYTES = 512
"""A mark, of which the topic's name (249 at most) is the largest part, and its length before it."""
_LENGTH_BYTES = 2
_FIRST_SLOTS = 64


class _Mark(msgspec.Struct):
    topic: str
    partition: int
    offset: int
    checksum: int
    """Of the content: on a new log the same offset is another event."""
    deaths: int
    handling: bool
    written_at: float
    """Unix seconds."""

    @property
    def key(self) -> "_Key":
        return (self.topic, self.partition, self.offset, self.checksum)


_Key = tuple[str, int, int, int]


class Journal:
    """One worker's journal in its own directory. Two workers never share one."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._slots = _Slots(directory / FILE_NAME)
        self._place: dict[_Key, int] = {}
        """The slot of each mark in the file."""
        self._marks: dict[_Key, _Mark] = {}
        """Those that an earlier worker left."""
        for slot, data in self._slots.used():
            mark = _read(data)
            if mark is None or mark.written_at < time.time() - KEEP_SECONDS or self._is_known(mark):
                self._slots.clear(slot)
                continue
            if mark.key in self._place:
                self._slots.clear(self._place[mark.key])
            self._place[mark.key] = slot
            if mark.handling:
                mark.deaths += 1
                mark.handling = False
                self._write(mark)
            self._marks[mark.key] = mark

    def suspect(self, record: Record) -> bool:
        """Was it being handled when the worker died? Then it must be handled alone."""
        return bool(self._marks) and _key(record) in self._marks

    def begin(self, record: Record) -> int:
        """Note that it is about to be handled; returns how many workers' deaths it has been part of."""
        key = _key(record)
        mark = self._marks.get(key) or _Mark(*key, deaths=0, handling=True, written_at=0.0)
        mark.handling = True
        self._write(mark)
        return mark.deaths

    def end(self, record: Record) -> None:
        """It is done with, or given back: no death can be laid to it any more."""
        key = _key(record)
        self._marks.pop(key, None)
        slot = self._place.pop(key, None)
        if slot is not None:
            self._slots.clear(slot)

    def _write(self, mark: _Mark) -> None:
        mark.written_at = time.time()
        before = self._place.get(mark.key)
        # into another slot: a death between the two leaves the old mark, or both
        self._place[mark.key] = self._slots.put(msgspec.json.encode(mark))
        if before is not None:
            self._slots.clear(before)

    def _is_known(self, mark: _Mark) -> bool:
        """Whether a death has left this mark twice, and the other tells at least as much."""
        other = self._marks.get(mark.key)
        return other is not None and other.deaths >= mark.deaths + mark.handling


class _Slots:
    """A file of slots, mapped. Each is empty (length 0) or holds one piece of bytes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _mapped(path, _FIRST_SLOTS)
        self._free = [slot for slot in self._all() if not self._length(slot)]

    def used(self) -> Iterator[tuple[int, bytes]]:
        """Every slot that holds something, as it is now."""
        free = set(self._free)
        for slot in [slot for slot in self._all() if slot not in free]:
            start = slot * SLOT_BYTES + _LENGTH_BYTES
            yield slot, self._file[start : start + self._length(slot)]

    def put(self, data: bytes) -> int:
        """Write it into an empty slot; returns which. The length goes in last: until then the slot is empty."""
        assert 0 < len(data) <= SLOT_BYTES - _LENGTH_BYTES, f"a mark of {len(data)} bytes"
        if not self._free:
            slots = len(self._all())
            self._file.close()
            self._file = _mapped(self._path, 2 * slots)
            self._free = list(range(slots, 2 * slots))
        slot = self._free.pop()
        start = slot * SLOT_BYTES
        self._file[start + _LENGTH_BYTES : start + _LENGTH_BYTES + len(data)] = data
        self._file[start : start + _LENGTH_BYTES] = len(data).to_bytes(_LENGTH_BYTES, "little")
        return slot

    def clear(self, slot: int) -> None:
        """Empty it."""
        start = slot * SLOT_BYTES
        self._file[start : start + _LENGTH_BYTES] = bytes(_LENGTH_BYTES)
        self._free.append(slot)

    def _all(self) -> range:
        return range(len(self._file) // SLOT_BYTES)

    def _length(self, slot: int) -> int:
        start = slot * SLOT_BYTES
        return int.from_bytes(self._file[start : start + _LENGTH_BYTES], "little")


def _mapped(path: Path, slots: int) -> mmap.mmap:
    """The file, of so many slots at least. Its blocks are taken now: a full disk is an error here, no signal later."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size = max(os.fstat(descriptor).st_size // SLOT_BYTES, slots) * SLOT_BYTES
        os.posix_fallocate(descriptor, 0, size)
        return mmap.mmap(descriptor, size)  # it keeps a descriptor of its own
    finally:
        os.close(descriptor)


def _key(record: Record) -> _Key:
    return (record.topic, record.partition, record.offset, zlib.crc32(record.value))


def _read(data: bytes) -> _Mark | None:
    """None for what is no mark: its event is then handled as new."""
    try:
        return msgspec.json.decode(data, type=_Mark)
    except msgspec.DecodeError:
        return None
