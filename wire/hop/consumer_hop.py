"""A hop on a plain aiokafka consumer, for services where Faust does not fit. The same path, the same watermark."""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, KafkaError

from wire.errors import BrokerUnreachable
from wire.hop.hop import Hop
from wire.hop.runner import Runner
from wire.hop.shell import (
    COMMIT_SECONDS,
    LAST_COMMIT_SECONDS,
    STOP_GRACE_SECONDS,
    hop_runner,
    run_until_stopped,
    start_offsets,
    watch,
)
from wire.kafka.clients import broker_errors, close, connect, make_consumer
from wire.kafka.records import Place, record_of
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics

log = logging.getLogger(__name__)

POLL_RECORDS = 128


async def run_consumer_hop(
    hop: Hop[Any],
    settings: KafkaSettings,
    *,
    stop: asyncio.Event,
    instance_id: str,
    state_directory: Path,
    metrics: Metrics,
) -> None:
    """Run the hop until `stop` is set. Raises what ended it otherwise (StopWorker, KafkaError).

    `instance_id` is this worker's fixed name in the consumer group: one that comes back under its name
    within the session time-out gets its partitions back without a rebalance.
    """
    async with hop_runner(hop, settings, metrics, state_directory) as runner:
        consumer = make_consumer(
            settings,
            f"headwater-{hop.name}",
            consumer_group=hop.name,
            instance_id=instance_id,
            max_records=POLL_RECORDS,
        )
        await connect(consumer, settings)
        shell = _Shell(settings, runner, consumer)
        try:
            consumer.subscribe([settings.name(topic.name) for topic in hop.topics], listener=shell)
            await run_until_stopped(
                runner,
                stop,
                shell.consume(),
                shell.commit_forever(),
                watch(runner, hop, settings, metrics, consumer.assignment),
            )
        finally:
            await runner.drain(STOP_GRACE_SECONDS if runner.failure is None else 0)
            await shell.commit_last()
            await close(consumer)


# aiokafka awaits what a listener's methods return, though its base class is not typed so
class _Shell(ConsumerRebalanceListener):
    def __init__(self, settings: KafkaSettings, runner: Runner, consumer: AIOKafkaConsumer) -> None:
        self._settings = settings
        self._runner = runner
        self._consumer = consumer

    async def consume(self) -> None:
        while True:
            with broker_errors(self._settings):
                batches = await self._consumer.getmany(timeout_ms=500)
            records = [record_of(self._settings, raw, raw.timestamp) for batch in batches.values() for raw in batch]
            leased = [(self._runner.lease(record.topic, record.partition), record) for record in records]
            for lease, record in leased:
                if lease is not None:
                    await self._runner.deliver(lease, record)

    async def commit_forever(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            await self.commit()

    async def commit(self) -> None:
        await self._commit(await self._runner.committable())

    async def commit_last(self) -> None:
        """At the end; a broker that does not answer must not hold it up."""
        try:
            async with asyncio.timeout(LAST_COMMIT_SECONDS):
                await self.commit()
        except (TimeoutError, BrokerUnreachable, KafkaError) as error:
            log.warning("the last offsets are not committed (their events will be read again): %r", error)

    async def on_partitions_revoked(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, revoked: Iterable[TopicPartition]
    ) -> None:
        await self._commit(self._runner.committable_now())
        await self._runner.revoked([(self._settings.logical(place.topic), place.partition) for place in revoked])

    async def on_partitions_assigned(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, assigned: Iterable[TopicPartition]
    ) -> None:
        # aiokafka logs what a listener raises and goes on; here it must end the worker
        try:
            places = list(assigned)
            if not places:
                return
            committed = {place: await self._consumer.committed(place) for place in places}
            starts = await start_offsets(self._settings, committed)
        except Exception as error:  # noqa: BLE001 - kept for run_until_stopped, which raises it
            self._runner.fail(error)
            return
        # no await between the two: what was fetched before has no lease, and is fetched again
        self._runner.assigned(starts)
        for (topic, partition), offset in starts.items():
            self._consumer.seek(TopicPartition(self._settings.name(topic), partition), offset)

    async def _commit(self, offsets: dict[Place, int]) -> None:
        held = self._consumer.assignment()
        commits = {
            place: offset
            for (topic, partition), offset in offsets.items()
            if (place := TopicPartition(self._settings.name(topic), partition)) in held
        }
        if not commits:
            return
        try:
            with broker_errors(self._settings):
                await self._consumer.commit(commits)
            self._runner.committed(offsets)
        except CommitFailedError as error:
            log.info("not committed, the partitions have moved on (they are read again there): %s", error)
