"""What comes off the log and what goes onto it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from schemas import Event
from schemas.topics import FIXED_TOPICS
from wire.kafka.settings import KafkaSettings

WRITER_HEADER = "writer"
ROLES = frozenset(role for spec in FIXED_TOPICS for role in spec.writers)
"""Those of us who write. A record whose `writer` is none of them is a user's, or written for one (prompts of files)."""


type Place = tuple[str, int]
"""A topic, by its logical name, and a partition of it."""


class Record(NamedTuple):
    """One record as it was read. `topic` is logical: without the prefix."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: bytes
    headers: dict[str, bytes]
    timestamp_ms: int

    @property
    def writer(self) -> str:
        """The role that wrote it; empty when it was not one of ours."""
        name = self.headers.get(WRITER_HEADER, b"").decode("utf-8", "replace")
        return name if name in ROLES else ""

    @property
    def where(self) -> str:
        """Its place on the log, for messages."""
        return f"{self.topic} [{self.partition}] at {self.offset}"


class Outgoing(NamedTuple):
    """One event to publish. `topic` is logical; `partition` None: by the key."""

    topic: str
    key: str
    event: Event
    partition: int | None = None


class RawRecord(Protocol):
    """The part of aiokafka's (and Faust's) records that we read."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Iterable[tuple[str, bytes | None]] | None: ...


def record_of(settings: KafkaSettings, raw: RawRecord, timestamp_ms: int) -> Record:
    """A broker's record with its logical topic. A null value reads as no bytes."""
    return Record(
        topic=settings.logical(raw.topic),
        partition=raw.partition,
        offset=raw.offset,
        key=None if raw.key is None else raw.key.decode("utf-8", "replace"),
        value=raw.value or b"",
        headers={name: value or b"" for name, value in raw.headers or ()},
        timestamp_ms=timestamp_ms,
    )


def header_list(headers: dict[str, bytes]) -> Sequence[tuple[str, bytes]]:
    """Headers as aiokafka takes them."""
    return list(headers.items())
