"""How far a hop is behind: its consumer group's committed offsets against the ends, and the age of what waits."""

import time
from collections.abc import Iterable
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from wire.kafka.clients import broker_errors, close, connect, make_consumer
from wire.kafka.offsets import check_offsets, end_offsets, first_records, probe
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import existing_topics


class TopicLag(NamedTuple):
    """One topic of one hop, its partitions together."""

    topic: str
    committed: int
    """Events that the group has acknowledged (the sum of its offsets)."""
    end: int
    events: int
    """Not acknowledged yet. Transactions' markers between them count too; where only markers are left it is 0."""
    oldest_age_seconds: float
    """Of the oldest unread event, by its time stamp; 0 with nothing unread."""


async def group_lag(settings: KafkaSettings, hop: str, topics: Iterable[str]) -> list[TopicLag]:
    """The lag of the hop's consumer group on each topic that exists."""
    counts = await existing_topics(settings)
    wanted = [topic for topic in topics if topic in counts]
    places = [TopicPartition(settings.name(topic), number) for topic in wanted for number in range(counts[topic])]
    if not places:
        return []
    committed = await _committed(settings, hop, places)
    async with probe(settings) as consumer:
        with broker_errors(settings):
            begins = await consumer.beginning_offsets(places)
        ends = await end_offsets(consumer, settings, places)
        positions = {place: begins[place] if committed[place] is None else committed[place] or 0 for place in places}
        spans = {place: (positions[place], ends[place]) for place in places if positions[place] < ends[place]}
        await check_offsets(consumer, settings, {place: start for place, (start, _) in spans.items()})
        oldest = await first_records(consumer, settings, spans)
    lags: list[TopicLag] = []
    for topic in wanted:
        mine = [place for place in places if place.topic == settings.name(topic)]
        stamps = [oldest[place].timestamp / 1000 for place in mine if place in oldest]
        lags.append(
            TopicLag(
                topic=topic,
                committed=sum(positions[place] for place in mine),
                end=sum(ends[place] for place in mine),
                events=sum(ends[place] - positions[place] for place in mine if place in oldest),
                oldest_age_seconds=max(0.0, time.time() - min(stamps)) if stamps else 0.0,
            )
        )
    return lags


async def _committed(
    settings: KafkaSettings, hop: str, places: list[TopicPartition]
) -> dict[TopicPartition, int | None]:
    consumer: AIOKafkaConsumer = make_consumer(settings, "headwater-lag", consumer_group=hop)
    await connect(consumer, settings)
    try:
        with broker_errors(settings):
            return {place: await consumer.committed(place) for place in places}
    finally:
        await close(consumer)
