"""A consumer group's offsets on partitions that are assigned by hand: no membership, no rebalance."""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from wire.kafka.clients import broker_errors, connect, make_consumer
from wire.kafka.records import Place
from wire.kafka.settings import KafkaSettings


class CommittedOffsets:
    """Reads and writes what a (logical) consumer group has committed. Use as `async with`.

    A commit needs an assigned partition, and an assigned partition would be fetched: so each is paused.
    """

    def __init__(self, settings: KafkaSettings, consumer_group: str) -> None:
        self._settings = settings
        self._consumer_group = consumer_group
        self._running: AIOKafkaConsumer | None = None
        self._assigned: set[TopicPartition] = set()
        self._committed: dict[Place, int] = {}

    async def __aenter__(self) -> Self:
        consumer = make_consumer(
            self._settings, f"headwater-{self._consumer_group}-offsets", consumer_group=self._consumer_group
        )
        await connect(consumer, self._settings)
        self._running = consumer
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._consumer.stop()
        self._running = None

    async def read(self, place: Place) -> int | None:
        """The committed offset; None before the first commit."""
        topic, number = place
        with broker_errors(self._settings):
            return await self._consumer.committed(TopicPartition(self._settings.name(topic), number))

    async def commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit these offsets (of the next event to read); those that have not changed cost nothing."""
        changed = {place: at for place, at in offsets.items() if self._committed.get(place) != at}
        if not changed:
            return
        partitions = {TopicPartition(self._settings.name(topic), number): at for (topic, number), at in changed.items()}
        self._assign(partitions)
        with broker_errors(self._settings):
            await self._consumer.commit(partitions)
        self._committed.update(changed)

    def _assign(self, places: Iterable[TopicPartition]) -> None:
        if self._assigned.issuperset(places):
            return
        self._assigned.update(places)
        self._consumer.assign(list(self._assigned))
        self._consumer.pause(*self._assigned)

    @property
    def _consumer(self) -> AIOKafkaConsumer:
        if self._running is None:
            raise RuntimeError("not started: use `async with`")
        return self._running
