"""Reading the log by offset, beside any consumer group: collect fetches rollouts, a takeover looks what is there."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from schemas.topics import topic_spec
from wire.errors import BrokerUnreachable, StoredOffsetOutOfRange
from wire.kafka.clients import REQUEST_TIMEOUT_SECONDS, administrator, broker_errors
from wire.kafka.offsets import end_offsets, probe
from wire.kafka.records import Record, record_of
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail

__all__ = ["LogReader", "StoredOffsetOutOfRange"]

READ_AHEAD_OFFSETS = 64
"""A wanted offset this near is read on to; one farther away is sought."""


class LogReader:
    """Random access to the log. Use as `async with`, or `start` and `stop`."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._running: AIOKafkaConsumer | None = None
        self._resources = AsyncExitStack()
        self._turn = asyncio.Lock()
        """One assignment at a time."""

    async def start(self) -> None:
        self._running = await self._resources.enter_async_context(probe(self._settings))

    async def stop(self) -> None:
        self._running = None
        await self._resources.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def begin_offset(self, topic: str, partition: int) -> int:
        """The lowest offset that the partition still holds."""
        place = self._place(topic, partition)
        with broker_errors(self._settings):
            return (await self._consumer.beginning_offsets([place]))[place]

    async def end_offset(self, topic: str, partition: int) -> int:
        """The offset that the next record will have (behind an open transaction: its first)."""
        place = self._place(topic, partition)
        async with self._turn:
            return (await end_offsets(self._consumer, self._settings, [place]))[place]

    async def partitions(self, topic: str) -> int:
        """How many partitions an existing topic has."""
        async with administrator(self._settings) as admin:
            described = await admin.describe_topics([self._settings.name(topic)])
            return len(described[0]["partitions"])

    async def read(self, topic: str, partition: int, offsets: Sequence[int]) -> list[Record]:
        """The records at these offsets, in the order asked for.

        Raises StoredOffsetOutOfRange when one is not on the log (any more).
        """
        found: dict[int, Record] = {}
        place = self._place(topic, partition)
        async with self._turn:
            self._consumer.assign([place])
            position: int | None = None
            try:
                for offset in sorted(set(offsets)):
                    if position is None or offset - position > READ_AHEAD_OFFSETS:
                        self._consumer.seek(place, offset)
                    found[offset] = await self._record_at(place, offset)
                    position = offset + 1
            except OffsetOutOfRangeError as error:
                raise self._missing(place, error.args[0]) from error
            finally:
                self._consumer.pause(place)  # else it would go on fetching ahead
        return [found[offset] for offset in offsets]

    async def scan(self, topic: str, partition: int, start: int, end: int | None = None) -> AsyncGenerator[Record]:
        """The records from `start` up to `end` (exclusive; None: the end at the time of the call), in order.

        Raises StoredOffsetOutOfRange when `start` is outside the log. Close it (`contextlib.aclosing`)
        when leaving it early.
        """
        last = await self.end_offset(topic, partition) if end is None else end
        async with Tail(self._settings, {(topic, partition): start}) as tail:
            while await tail.position(topic, partition) < last:
                for record in await tail.poll():
                    if record.offset >= last:
                        return
                    yield record

    async def read_all(self, topic: str) -> list[Record]:
        """Everything that a small (compacted) topic holds, in order per partition."""
        spec = topic_spec(topic)
        count = await self.partitions(topic) if spec.grouped else spec.partitions
        records: list[Record] = []
        for partition in range(count):
            start = await self.begin_offset(topic, partition)
            records += [record async for record in self.scan(topic, partition, start)]
        return records

    async def _record_at(self, place: TopicPartition, offset: int) -> Record:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + REQUEST_TIMEOUT_SECONDS
        while loop.time() < deadline:
            with broker_errors(self._settings):
                found = await self._consumer.getmany(place, timeout_ms=500, max_records=1)
                position = await self._consumer.position(place)
            for raw in found.get(place, ()):
                if raw.offset == offset:
                    return record_of(self._settings, raw, raw.timestamp)
            # passed without meeting it (compacted away, a marker), or beyond an end that some brokers wait at
            end = self._consumer.highwater(place)
            if position > offset or (end is not None and offset >= end):
                raise self._missing(place, offset)
        raise BrokerUnreachable(
            f"{self._settings.bootstrap} gave no record of {place.topic} [{place.partition}] at {offset} "
            f"within {REQUEST_TIMEOUT_SECONDS} s"
        )

    def _missing(self, place: TopicPartition, offset: object) -> StoredOffsetOutOfRange:
        return StoredOffsetOutOfRange(
            f"no record at offset {offset} of {place.topic} [{place.partition}]: "
            "it belongs to another log, or retention has deleted it"
        )

    def _place(self, topic: str, partition: int) -> TopicPartition:
        return TopicPartition(self._settings.name(topic), partition)

    @property
    def _consumer(self) -> AIOKafkaConsumer:
        if self._running is None:
            raise RuntimeError("the reader is not started")
        return self._running
