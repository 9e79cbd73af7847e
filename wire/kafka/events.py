"""From a record to its event, once for every reader of the log.

    another version, written by one of us ──► UpgradeFirst: the worker stops, acknowledging nothing
    any other event that cannot be read ────► to dead letters, by the topic's first reader; the others pass over it

What none of our roles wrote (header `writer`) has words for a failure, and never one of our reasons.
"""

import logging
import time

from schemas import Event, EventTooLarge, SchemaError, UnknownVersion
from schemas.codec import decode
from schemas.outcomes import MayBeUnscorable
from schemas.topics import TopicSpec, first_reader
from wire.errors import UpgradeFirst
from wire.kafka.dead_letters import DeadLetterKind
from wire.kafka.publisher import Publisher
from wire.kafka.records import Record
from wire.metrics import Metrics

log = logging.getLogger(__name__)


def event_of[E: Event](record: Record, topic: TopicSpec[E]) -> E:
    """The event of a record. Raises UpgradeFirst, or SchemaError for what cannot be read."""
    try:
        event = decode(record.value, topic)
    except UnknownVersion as error:
        if record.writer:
            raise UpgradeFirst(f"upgrade me first: {record.writer} wrote to {record.where}: {error}") from error
        raise
    return event.in_words() if isinstance(event, MayBeUnscorable) and not record.writer else event


def readable[E: Event](record: Record, topic: TopicSpec[E]) -> E | None:
    """The event, or None for one that the topic's first reader puts aside. Raises UpgradeFirst."""
    try:
        return event_of(record, topic)
    except SchemaError as error:
        log.warning("%s is not read: %s", record.where, error)
        return None


def glance[E: Event](record: Record, topic: TopicSpec[E]) -> E | None:
    """The event, for onlookers: None for whatever cannot be read here, events of a newer release too."""
    try:
        return event_of(record, topic)
    except (SchemaError, UpgradeFirst):
        return None


class EventReader:
    """One role's reading: what it cannot read is put aside or passed over, and counted."""

    def __init__(self, role: str, publisher: Publisher, metrics: Metrics) -> None:
        self._role = role
        self._publisher = publisher
        self._metrics = metrics

    async def read[E: Event](self, record: Record, topic: TopicSpec[E]) -> E | None:
        """The event; None when it cannot be read. Raises UpgradeFirst, BrokerUnreachable."""
        try:
            return event_of(record, topic)
        except SchemaError as error:
            kind = _kind(error)
            if first_reader(topic.name) == self._role:
                await self.put_aside(record, str(error), kind)
            else:
                self._metrics.skipped.labels(self._role, kind.value).inc()
            return None

    async def put_aside(
        self, record: Record, reason: str, kind: DeadLetterKind, attempts: int = 1, first_seen: float | None = None
    ) -> None:
        """To dead letters. `first_seen`: Unix seconds, None: now."""
        log.warning("%s: to dead letters (%s): %s", record.where, kind.value, reason)
        seen = time.time() if first_seen is None else first_seen
        await self._publisher.dead_letter(record, reason, attempts, kind=kind, first_seen=seen)
        self._metrics.dead_letters.labels(self._role, kind.value).inc()


def _kind(error: SchemaError) -> DeadLetterKind:
    if isinstance(error, UnknownVersion):
        return DeadLetterKind.UNKNOWN_VERSION
    return DeadLetterKind.TOO_LARGE if isinstance(error, EventTooLarge) else DeadLetterKind.MALFORMED
