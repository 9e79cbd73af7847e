"""Events in flight: slots, leases and the watermark of every partition. Both shells of a hop stand on it.

The life of an event in a worker:

    delivered ──► waits for a slot ──► handled and published ──► done (the watermark may pass it)
                        │                       │
                        └── partition revoked ──┴──► dropped: the next owner reads it again

A shell (`wire.hop.faust_hop`, `wire.hop.consumer_hop`) brings records in with `deliver`, commits what
`committable` says, and tells of partitions with `assigned` and `revoked`.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from aiokafka import TopicPartition

from wire.errors import NoProgress, StoredOffsetOutOfRange
from wire.hop.hop import Hop
from wire.hop.inflight import Journal
from wire.hop.processor import Processor
from wire.hop.watermark import Watermark
from wire.kafka.offsets import probe
from wire.kafka.publisher import Publisher
from wire.kafka.records import Place, Record
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5


class Lease:
    """A partition from its assignment until it is revoked. Whoever holds an old one changes nothing any more."""

    def __init__(self, start: int) -> None:
        self.watermark = Watermark()
        self.tasks: set[asyncio.Task[None]] = set()
        self.revoked = False
        self.expected = start
        """The offset that comes next on a log without gaps."""
        self.committed = start


class Runner:
    """Keeps up to `hop.concurrency` events in flight and knows what may be committed."""

    def __init__(
        self, hop: Hop[Any], settings: KafkaSettings, publisher: Publisher, journal: Journal, metrics: Metrics
    ) -> None:
        self.failed = asyncio.Event()
        """Set when the worker must end; `failure` says why."""
        self.failure: BaseException | None = None
        self._hop = hop
        self._settings = settings
        self._journal = journal
        self._metrics = metrics
        self._processor = Processor(hop, publisher, journal, metrics)
        self._leases: dict[Place, Lease] = {}
        self._slots = asyncio.Semaphore(hop.concurrency)
        self._turn = asyncio.Lock()
        """Held by the one event or tick of a hop of concurrency 1, and while its floors are asked."""
        self._closing = False
        self._moved_at = time.monotonic()
        self._holds = type(hop).floor is not Hop.floor
        assert not self._holds or hop.concurrency == 1, f"{hop.name}: a floor needs concurrency 1"

    # partitions

    def assigned(self, starts: Mapping[Place, int]) -> None:
        """Events of these partitions are taken from now on, each from its start offset."""
        new = {partition: Lease(start) for partition, start in starts.items() if partition not in self._leases}
        self._leases.update(new)
        self._moved_at = time.monotonic()
        self._hop.assigned({partition: starts[partition] for partition in new})

    def lease(self, topic: str, partition: int) -> Lease | None:
        """Today's lease. A shell takes it in the moment a record is fetched, so that one fetched before
        a rebalance is never counted after it."""
        return self._leases.get((topic, partition))

    async def revoked(self, partitions: Iterable[Place]) -> None:
        """Drop what is in flight of these partitions and let the hop forget them."""
        lost = [partition for partition in partitions if partition in self._leases]
        leases = [self._leases.pop(partition) for partition in lost]
        for lease in leases:
            lease.revoked = True
        await _cancel({task for lease in leases for task in lease.tasks})
        self._hop.revoked(lost)

    # events

    async def deliver(self, lease: Lease, record: Record) -> None:
        """Take one record, in order per partition; returns when it has its slot (this is what holds a shell back)."""
        # what was in flight when the last worker died is handled alone, so that a death has one culprit
        slots = self._hop.concurrency if self._journal.suspect(record) else 1
        for _ in range(slots):
            await self._slots.acquire()
        if record.offset > lease.expected:
            await self._check_gap(lease, record)
        if lease.revoked or self._closing or self.failed.is_set() or not lease.watermark.delivered(record.offset):
            self._release(slots)
            return
        lease.expected = record.offset + 1
        self._moved_at = time.monotonic()
        task = asyncio.create_task(self._work(lease, record), name=f"{self._hop.name} {record.offset}")
        lease.tasks.add(task)
        task.add_done_callback(lease.tasks.discard)
        task.add_done_callback(lambda _: self._release(slots))  # also of one cancelled before it began

    async def _check_gap(self, lease: Lease, record: Record) -> None:
        """Compaction and transactions' markers leave offsets without a record; what retention took is gone."""
        partition = TopicPartition(self._settings.name(record.topic), record.partition)
        async with probe(self._settings) as consumer:
            if (await consumer.beginning_offsets([partition]))[partition] <= lease.expected:
                return
        self.fail(
            StoredOffsetOutOfRange(
                f"{record.topic} [{record.partition}]: after {lease.expected - 1} comes {record.offset}, and what was "
                "between is gone: retention has passed this worker"
            )
        )

    def passed(self, partition: Place, start: int, end: int) -> None:
        """There is no record in offsets [start, end): with nothing delivered meanwhile, they count as done.

        Else the marker after a last event would be lag for ever.
        """
        lease = self._leases.get(partition)
        if lease is not None and lease.expected == start and lease.watermark.delivered(end - 1):
            lease.watermark.done(end - 1)
            lease.expected = end

    async def _work(self, lease: Lease, record: Record) -> None:
        self._metrics.in_flight.labels(self._hop.name).inc()
        try:
            async with AsyncExitStack() as turn:
                if self._hop.concurrency == 1:
                    await turn.enter_async_context(self._turn)
                await self._processor.process(record)
                lease.watermark.done(record.offset)
            self._moved_at = time.monotonic()
        except Exception as error:  # noqa: BLE001 - kept for the shell, which ends with it
            self.fail(error)
        finally:
            self._metrics.in_flight.labels(self._hop.name).dec()

    async def tick_forever(self) -> None:
        """The hop's clock; a task of the shell."""
        if type(self._hop).tick is Hop.tick:
            return
        try:
            while not self._closing:
                await asyncio.sleep(TICK_SECONDS)
                async with AsyncExitStack() as turn:
                    if self._hop.concurrency == 1:
                        await turn.enter_async_context(self._turn)
                    await self._processor.publish(await self._hop.tick(time.time()))
        except Exception as error:
            log.exception("%s: tick failed", self._hop.name)
            self.fail(error)

    # commits

    async def committable(self) -> dict[Place, int]:
        """The offset to commit (that of the next event to read) of each partition where it has moved."""
        if not self._holds:
            return self._watermarks()
        # between two events: during one, groups it closed may have given up their floors with nothing published yet
        async with self._turn:
            return self._watermarks()

    def committable_now(self) -> dict[Place, int]:
        """The same without waiting: empty when an event of a hop with floors is being handled."""
        return {} if self._holds and self._turn.locked() else self._watermarks()

    def _watermarks(self) -> dict[Place, int]:
        offsets: dict[Place, int] = {}
        for (topic, partition), lease in self._leases.items():
            offset = lease.watermark.committable(self._hop.floor(topic, partition) if self._holds else None)
            if offset is not None and offset > lease.committed:
                offsets[topic, partition] = offset
        return offsets

    def committed(self, offsets: Mapping[Place, int]) -> None:
        """The broker has taken these."""
        for partition, offset in offsets.items():
            lease = self._leases.get(partition)
            if lease is not None:
                lease.committed = max(lease.committed, offset)

    # life

    @property
    def in_flight(self) -> int:
        """Events being handled."""
        return sum(len(lease.tasks) for lease in self._leases.values())

    @property
    def still_seconds(self) -> float:
        """Time since an event was last delivered or done."""
        return time.monotonic() - self._moved_at

    def check_handlers(self) -> None:
        """Fails the worker when events have been in flight for `hop.stall_seconds` and none has ended."""
        if self.in_flight and self.still_seconds > self._hop.stall_seconds:
            self.fail(
                NoProgress(
                    f"{self._hop.name}: {self.in_flight} events in flight and none done for "
                    f"{self.still_seconds:.0f} s (limit {self._hop.stall_seconds:.0f} s)"
                )
            )

    def fail(self, error: BaseException) -> None:
        """End the worker with this error; the first one counts."""
        if self.failure is None:
            self.failure = error
            self.failed.set()

    async def raise_failure(self) -> None:
        """Wait until the worker must end, and raise why."""
        await self.failed.wait()
        assert self.failure is not None
        raise self.failure

    async def drain(self, grace_seconds: float) -> None:
        """Take no more, let what is in flight end within the time, drop the rest."""
        self._closing = True
        tasks = {task for lease in self._leases.values() for task in lease.tasks}
        if tasks:
            await asyncio.wait(tasks, timeout=grace_seconds)
        await _cancel(tasks)

    def _release(self, slots: int) -> None:
        for _ in range(slots):
            self._slots.release()


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
