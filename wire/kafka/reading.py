"""Reading topics as any user may: every partition, no consumer group, nothing committed."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from aiokafka import TopicPartition

from wire.kafka import offsets
from wire.kafka.clients import broker_errors
from wire.kafka.offsets import probe
from wire.kafka.records import Place, Record
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.kafka.topics import existing_topics


async def places_of(settings: KafkaSettings, topics: Iterable[str]) -> list[Place]:
    """Every partition of those topics that exist; asking creates none. Raises BrokerUnreachable."""
    existing = await existing_topics(settings)
    return [(topic, number) for topic in topics for number in range(existing.get(topic, 0))]


async def begin_and_end_offsets(settings: KafkaSettings, places: Sequence[Place]) -> dict[Place, tuple[int, int]]:
    """What each partition holds now: its first offset, and the one its next record will have."""
    if not places:
        return {}
    names = {place: TopicPartition(settings.name(place[0]), place[1]) for place in places}
    async with probe(settings) as consumer:
        with broker_errors(settings):
            begins = await consumer.beginning_offsets(list(names.values()))
        ends = await offsets.end_offsets(consumer, settings, names.values())
    return {place: (begins[name], ends[name]) for place, name in names.items()}


class EndOffsets:
    """Asks where partitions end, again and again over one connection. Use as `async with`."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._probe = await self._resources.enter_async_context(probe(self._settings))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._resources.aclose()

    async def of(self, places: Sequence[Place]) -> dict[Place, int]:
        """The offset that the next record of each will have. Raises BrokerUnreachable."""
        names = {place: TopicPartition(self._settings.name(place[0]), place[1]) for place in places}
        ends = await offsets.end_offsets(self._probe, self._settings, names.values())
        return {place: ends[name] for place, name in names.items()}


async def end_offsets(settings: KafkaSettings, topics: Iterable[str]) -> dict[Place, int]:
    """Where the topics end now: give it to `read_topics` to read what comes after."""
    held = await begin_and_end_offsets(settings, await places_of(settings, topics))
    return {place: end for place, (_, end) in held.items()}


async def read_topics(
    settings: KafkaSettings,
    topics: Iterable[str],
    *,
    follow: bool = False,
    start: Mapping[Place, int] | None = None,
) -> AsyncGenerator[Record]:
    """Records of the topics, in order per partition: those there are, or (`follow`) those to come too.

    `start` None: from the beginning. Without `follow` it ends at the ends that the partitions had when it began.
    """
    held = await begin_and_end_offsets(settings, await places_of(settings, topics))
    if not held:
        return
    begins = {place: begin for place, (begin, _) in held.items()} if start is None else start
    left = {place for place, (_, end) in held.items() if begins[place] < end}
    async with Tail(settings, begins) as tail:
        while follow or left:
            for record in await tail.poll():
                if follow or record.offset < held[record.topic, record.partition][1]:
                    yield record
            left = {place for place in left if await tail.position(*place) < held[place][1]}
