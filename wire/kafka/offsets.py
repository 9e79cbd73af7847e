"""Where partitions begin and end, and whether a stored offset still lies between."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition

from schemas.topics import MIB
from wire.errors import BrokerUnreachable, StoredOffsetOutOfRange
from wire.kafka.clients import REQUEST_TIMEOUT_SECONDS, broker_errors, close, connect, make_consumer
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
    """The offset that each partition's next record will have (with transactions: the next that may be read).

    `consumer` has no group; what it was assigned is replaced, and paused afterwards.

    The bundled broker lists the first offset of the last batch plus one, too little when that batch has
    several records; its fetch answers carry the right one. So, without transactions, the last listed
    record is fetched and the high watermark that comes with it is taken.
    """
    with broker_errors(settings):
        listed: dict[TopicPartition, int] = await consumer.end_offsets(list(partitions))
    if settings.transactions:
        return listed
    unknown = {partition for partition, end in listed.items() if end > 0}
    if not unknown:
        return listed
    ends = dict(listed)
    consumer.assign(list(unknown))
    try:
        for partition in unknown:
            consumer.seek(partition, listed[partition] - 1)
        deadline = asyncio.get_running_loop().time() + REQUEST_TIMEOUT_SECONDS
        while unknown:
            with broker_errors(settings):
                await consumer.getmany(timeout_ms=100)
            for partition in list(unknown):
                high_watermark = consumer.highwater(partition)
                if high_watermark is not None:
                    ends[partition] = max(listed[partition], high_watermark)
                    unknown.remove(partition)
            if unknown and asyncio.get_running_loop().time() > deadline:
                raise BrokerUnreachable(
                    f"{settings.bootstrap} answered no fetch of {unknown} within {REQUEST_TIMEOUT_SECONDS} s"
                )
    finally:
        consumer.pause(*consumer.assignment())  # not unassigned: see `stop_consumer`
    return ends


async def check_offsets(
    consumer: AIOKafkaConsumer, settings: KafkaSettings, stored: Mapping[TopicPartition, int]
) -> None:
    """Raises StoredOffsetOutOfRange for an offset outside [begin, end] of its partition.

    Some brokers reset it, and the bundled one waits for ever, instead of saying so: it is asked first.
    `consumer` as for `end_offsets`.
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
