"""The one path of an event through a hop: decode → handle → publish; when it returns, all of it is durable."""

import asyncio
import logging
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import cast

from aiokafka.errors import KafkaError

from schemas import Event, EventTooLarge, MalformedEvent
from schemas.topics import TopicSpec, topic_spec
from wire.errors import Retryable, StopWorker
from wire.hop.hop import Hop
from wire.hop.inflight import DEATHS_TO_POISON, Journal
from wire.kafka.dead_letters import DeadLetterKind
from wire.kafka.events import EventReader
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing, Record
from wire.metrics import Metrics

log = logging.getLogger(__name__)

FIRST_BACKOFF_SECONDS = 0.2
BACKOFF_FACTOR = 5


class _GaveUp(Exception):
    """Every try failed, or none can help."""

    def __init__(self, reason: str, kind: DeadLetterKind, attempts: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind
        self.attempts = attempts


class Processor[E: Event]:
    """Takes records through one hop. What it raises ends the worker; the record is then not acknowledged."""

    def __init__(self, hop: Hop[E], publisher: Publisher, journal: Journal, metrics: Metrics) -> None:
        self._hop = hop
        self._publisher = publisher
        self._journal = journal
        self._metrics = metrics
        self._events = EventReader(hop.name, publisher, metrics)
        self._in_hand = 0
        self._counted = time.monotonic()

    async def process(self, record: Record) -> None:
        """Returns when everything that follows from the record is on the log.

        Raises StopWorker (UpgradeFirst, BrokerUnreachable, …) or a KafkaError: nothing of it may then be
        taken as done.
        """
        first_seen = time.time()
        self._metrics.events_in.labels(self._hop.name, record.topic).inc()
        with self._busy(), self._metrics.handler_seconds.labels(self._hop.name).time():
            # only records of its own topics come to a hop
            event = await self._events.read(record, cast("TopicSpec[E]", topic_spec(record.topic)))
            if event is None:
                return
            deaths = self._journal.begin(record)
            try:
                if deaths >= DEATHS_TO_POISON:
                    await self._poison(event, record, deaths, first_seen)
                else:
                    await self._handle(event, record, first_seen)
            finally:
                self._journal.end(record)

    @contextmanager
    def _busy(self) -> Generator[None]:
        """Count the time with at least one event in hand, however many they are."""
        self._count(+1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        now = time.monotonic()
        if self._in_hand:
            self._metrics.busy_seconds.labels(self._hop.name).inc(now - self._counted)
        self._counted = now
        self._in_hand += change

    async def publish(self, outs: Sequence[Outgoing]) -> None:
        """Send and await the broker's answer."""
        await self._publisher.send_all(outs)
        for out in outs:
            self._metrics.events_out.labels(self._hop.name, out.topic).inc()
        self._hop.published(outs)

    async def _handle(self, event: E, record: Record, first_seen: float) -> None:
        try:
            outs = await self._try(event, record)
        except _GaveUp as gave_up:
            await self._events.put_aside(record, gave_up.reason, gave_up.kind, gave_up.attempts, first_seen)
            outs = self._hop.exhausted(event, record, gave_up.reason)
        try:
            await self.publish(outs)
        except (EventTooLarge, MalformedEvent) as error:
            too_large = isinstance(error, EventTooLarge)
            kind = DeadLetterKind.TOO_LARGE if too_large else DeadLetterKind.REJECTED
            await self._events.put_aside(record, str(error), kind, 1, first_seen)
            try:
                await self.publish(self._hop.exhausted(event, record, str(error)))
            except (EventTooLarge, MalformedEvent):
                # only the dead letter is left to tell of it; its group ends at the deadline
                log.exception("%s: even the failure of it cannot be published", record.where)

    async def _try(self, event: E, record: Record) -> Sequence[Outgoing]:
        attempt = 1
        while True:
            try:
                return await self._hop.handle(event, record)
            except (StopWorker, KafkaError):
                raise  # the log itself cannot be used: that says nothing about the event
            except MalformedEvent as error:
                raise _GaveUp(str(error), DeadLetterKind.REJECTED, attempt) from error
            except Retryable as error:
                reason = str(error) or repr(error)
                log.warning("%s: try %d of %d failed: %s", record.where, attempt, self._hop.attempts, reason)
            except Exception as error:  # whatever a hop did wrong must not stop the stream
                reason = f"{type(error).__name__}: {error}"
                log.exception("%s: try %d of %d failed", record.where, attempt, self._hop.attempts)
            if attempt >= self._hop.attempts:
                raise _GaveUp(reason, DeadLetterKind.EXHAUSTED, attempt)
            await asyncio.sleep(FIRST_BACKOFF_SECONDS * BACKOFF_FACTOR ** (attempt - 1))
            attempt += 1
            self._metrics.retries.labels(self._hop.name).inc()

    async def _poison(self, event: E, record: Record, deaths: int, first_seen: float) -> None:
        reason = f"poisoned: {deaths} {self._hop.name} workers in a row died while it was being handled"
        await self._events.put_aside(record, reason, DeadLetterKind.POISONED, deaths, first_seen)
        await self.publish(self._hop.poisoned(event, record))
