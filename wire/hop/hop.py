"""A hop: consume, handle, produce, and only then acknowledge. Every hop of the system takes this one path."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from schemas import Event
from schemas.topics import TopicSpec
from wire.kafka.records import Outgoing, Place, Record


class Hop[E: Event](ABC):
    """What one hop does with an event, one of E. `wire.hop.processor` calls it, inside Faust or beside it.

    A hop may see an event again after a crash or a rebalance: every id it derives must be a pure
    function of its input's (invariant 2).
    """

    name: str
    """The hop's role, consumer group and `writer` header."""
    topics: tuple[TopicSpec[E], ...]
    """Partitions of the same number are always with the same worker."""
    concurrency: int = 1
    """Events in flight in one worker. 1: in order of delivery, and `tick` never runs beside `handle`."""
    attempts: int = 4
    """Tries at one event before it is given up."""
    stall_seconds: float = 600.0
    """With events in flight and none done for so long, the worker ends: longer than any one event may take."""

    @abstractmethod
    async def handle(self, event: E, record: Record) -> Sequence[Outgoing]:
        """The events that follow from `event`; they are published before it is acknowledged.

        Raise Retryable for an infrastructure fault: it is tried again with back-off, then goes to
        dead letters and to `exhausted`. Any other Exception takes the same path, with its traceback logged.
        Raise MalformedEvent for an event that asks for what cannot be done: the same, without trying again.
        """

    async def start(self) -> None:  # noqa: B027 - an optional hook
        """Called once, before the first event."""

    async def stop(self) -> None:  # noqa: B027 - an optional hook
        """Called once, after the last event; also when the worker fails."""

    def floor(self, topic: str, partition: int) -> int | None:
        """The lowest offset that must stay uncommitted there (it will be read again after a crash); None: no hold.

        Only for hops of concurrency 1: it is asked between two events, never during one.
        """
        return None

    async def tick(self, now: float) -> Sequence[Outgoing]:
        """Called about twice a second with Unix seconds; what it returns is published. An exception ends the worker."""
        return ()

    def assigned(self, starts: Mapping[Place, int]) -> None:  # noqa: B027 - an optional hook
        """These (topic, partition) pairs are now this worker's; their events follow from these offsets on."""

    def revoked(self, partitions: Iterable[Place]) -> None:  # noqa: B027 - an optional hook
        """These are not this worker's any more: drop what is held of them, the next owner reads it again."""

    def published(self, outs: Sequence[Outgoing]) -> None:  # noqa: B027 - an optional hook
        """These, returned by `handle`, `tick`, `poisoned` or `exhausted`, are durable now."""

    def poisoned(self, event: E, record: Record) -> Sequence[Outgoing]:
        """What to publish for an event over which the worker died twice, in place of handling it (invariant 7)."""
        return ()

    def exhausted(self, event: E, record: Record, reason: str) -> Sequence[Outgoing]:
        """What to publish for an event that every try failed on: the failure goes down the path too (invariant 3)."""
        return ()
