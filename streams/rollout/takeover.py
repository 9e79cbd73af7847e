"""Generations that somebody may have begun to sample before us: which of their samples are on the log (invariant 2).

When a partition becomes ours, every generation that is in it by then may have had another owner, or us in an
earlier life. `rollouts` of the same partition is read once, from where it stood when the first of them was admitted.
What a former owner sends after that is a second rollout of its index; the first in log order counts.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing

import msgspec

from schemas import Generation
from schemas.topics import GENERATIONS, ROLLOUTS
from wire.kafka.log_reader import LogReader
from wire.kafka.records import Record

WRITER = "rollout"


class _Sample(msgspec.Struct):
    """What is wanted of a rollout; its tokens are not decoded."""

    group_id: str
    sample_index: int


class _Partition:
    def __init__(self) -> None:
        self.reading = asyncio.Lock()
        self.before: int | None = None
        """Generations below this offset may have had another owner; None: not known yet."""
        self.read_from: int | None = None
        self.found: dict[str, set[int]] = {}


class Takeover:
    """Belongs to one worker. `assigned` starts a partition anew."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._partitions: dict[int, _Partition] = {}

    def assigned(self, partitions: Iterable[int]) -> None:
        """These are ours now, with whatever is in them."""
        self._partitions.update({partition: _Partition() for partition in partitions})

    def revoked(self, partitions: Iterable[int]) -> None:
        """Forget them."""
        for partition in partitions:
            self._partitions.pop(partition, None)

    async def found(self, generation: Generation, record: Record) -> Mapping[str, set[int]]:
        """Group id -> sample indices that are on the log, of this group and perhaps of others.

        Raises StoredOffsetOutOfRange, BrokerUnreachable.
        """
        state = self._partitions.setdefault(record.partition, _Partition())
        async with state.reading:
            if state.before is None:
                state.before = await self._reader.end_offset(GENERATIONS.name, record.partition)
            if record.offset >= state.before:
                state.found.clear()  # nobody asks for what was there before any more
                return {}
            await self._read(state, record.partition, generation.rollouts_end_offset)
        return state.found

    async def _read(self, state: _Partition, partition: int, start: int) -> None:
        """See to it that `rollouts` is read from `start` on to where it ended when this partition was first read."""
        begin = await self._reader.begin_offset(ROLLOUTS.name, partition)
        start = max(start, begin)  # what retention took is no sample that a group still waits for
        if state.read_from is None:
            state.read_from = await self._reader.end_offset(ROLLOUTS.name, partition)
        if start >= state.read_from:
            return
        async with aclosing(self._reader.scan(ROLLOUTS.name, partition, start, state.read_from)) as records:
            async for record in records:
                if record.writer == WRITER:
                    sample = msgspec.json.decode(record.value, type=_Sample)
                    state.found.setdefault(sample.group_id, set()).add(sample.sample_index)
        state.read_from = start
