"""Where partitions begin and end, and whether a stored offset still lies between."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from schemas.topics import MIB
from wire.errors import StoredOffsetOutOfRange
from wire.kafka.clients import broker_errors, close, connect, make_consumer
from wire.kafka.settings import KafkaSettings


@asynccontextmanager
async def probe(settings: KafkaSettings) -> AsyncGenerator[AIOKafkaConsumer]:
    """A consumer of no group and no partitions, to ask offsets with."""
    # a small fetch: of what is fetched only a few records are wanted
    consumer = make_consumer(settings, "headwater-probe", partition_fetch_bytes=MIB)
    await connect(consumer, settings)
    try:
        yield consumer
    finally:
        await close(consumer)


async def end_offsets(
    consumer: AIOKafkaConsumer, settings: KafkaSettings, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The offset that each partition's next record will have (behind an open transaction: its first)."""
    with broker_errors(settings):
        return await consumer.end_offsets(list(partitions))


async def first_records(
    consumer: AIOKafkaConsumer, settings: KafkaSettings, spans: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, ConsumerRecord[bytes | None, bytes | None]]:
    """The first record of each span of offsets [start, end) that has one.

    One has none where there are only markers (each transaction leaves one, which takes an offset), or
    where compaction has taken what there was. `consumer` has no group; what it was assigned is replaced,
    and paused afterwards. Raises OffsetOutOfRangeError for a start that the log does not hold.
    """
    found: dict[TopicPartition, ConsumerRecord[bytes | None, bytes | None]] = {}
    waiting = {place for place, (start, end) in spans.items() if start < end}
    if not waiting:
        return found
    consumer.assign(list(waiting))
    try:
        for place in waiting:
            consumer.seek(place, spans[place][0])
        while waiting:
            with broker_errors(settings):
                fetched = await consumer.getmany(timeout_ms=100)
            for place in list(waiting):
                first = next((raw for raw in fetched.get(place, ()) if raw.offset < spans[place][1]), None)
                if first is not None:
                    found[place] = first
                # fetched up to the end without one: the position passes over what is no record
                if first is not None or await consumer.position(place) >= spans[place][1]:
                    waiting.remove(place)
                    consumer.pause(place)
    finally:
        consumer.pause(*consumer.assignment())  # not unassigned: see `stop_consumer`
    return found


async def check_offsets(
    consumer: AIOKafkaConsumer, settings: KafkaSettings, stored: Mapping[TopicPartition, int]
) -> None:
    """Raises StoredOffsetOutOfRange for an offset outside [begin, end] of its partition.

    Asked before reading: a consumer of a group would be reset instead.
    """
    if not stored:
        return
    with broker_errors(settings):
        begins = await consumer.beginning_offsets(list(stored))
    ends = await end_offsets(consumer, settings, stored)
    for partition, offset in stored.items():
        begin, end = begins[partition], ends[partition]
        if not begin <= offset <= end:
            raise StoredOffsetOutOfRange(
                f"offset {offset} of {partition.topic} [{partition.partition}] is outside what the log holds "
                f"({begin} to {end}): it belongs to another log, or retention has deleted it"
            )
