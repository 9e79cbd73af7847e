"""What both shells of a hop share: its life around the runner, and where each partition begins."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from wire.errors import BrokerUnreachable, NoProgress
from wire.hop.hop import Hop
from wire.hop.inflight import Journal
from wire.hop.runner import Runner
from wire.kafka.clients import broker_errors
from wire.kafka.offsets import check_offsets, end_offsets, first_records, probe
from wire.kafka.publisher import Publisher
from wire.kafka.records import Place
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics
from wire.together import beside

log = logging.getLogger(__name__)

COMMIT_SECONDS = 1.0
STOP_GRACE_SECONDS = 10.0
"""What is in flight at a stop may end within this time; the rest is read again."""
LAST_COMMIT_SECONDS = 5.0
WATCH_SECONDS = 5.0
FETCH_STALL_SECONDS = 120.0
"""With events waiting on the broker and none delivered for so long, the consumer is dead (it happens silently)."""


@asynccontextmanager
async def hop_runner(
    hop: Hop[Any], settings: KafkaSettings, metrics: Metrics, state_directory: Path
) -> AsyncGenerator[Runner]:
    """The hop, started, with its publisher and journal; stopped when the block is left."""
    journal = Journal(state_directory / "inflight")
    async with Publisher(settings, hop.name) as publisher:
        runner = Runner(hop, settings, publisher, journal, metrics)
        try:
            await hop.start()
            ticking = asyncio.create_task(runner.tick_forever(), name=f"{hop.name} tick")
            try:
                yield runner
            finally:
                ticking.cancel()
                await asyncio.wait([ticking])
                await runner.drain(0)
        finally:
            await hop.stop()


async def start_offsets(settings: KafkaSettings, committed: Mapping[TopicPartition, int | None]) -> dict[Place, int]:
    """Where reading begins: the committed offset, or the first that is there.

    Raises StoredOffsetOutOfRange when a committed one lies outside its log.
    """
    async with probe(settings) as consumer:
        with broker_errors(settings):
            begins = await consumer.beginning_offsets(list(committed))
        await check_offsets(
            consumer, settings, {place: offset for place, offset in committed.items() if offset is not None}
        )
    return {
        (settings.logical(place.topic), place.partition): begins[place] if offset is None else offset
        for place, offset in committed.items()
    }


async def watch(
    runner: Runner,
    hop: Hop[Any],
    settings: KafkaSettings,
    metrics: Metrics,
    assignment: Callable[[], Iterable[TopicPartition]],
) -> None:
    """Every few seconds: the lag as metrics, and the two ways in which a worker stands still."""
    stuck_since: float | None = None
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        runner.check_handlers()
        places = list(assignment())
        try:
            async with asyncio.timeout(FETCH_STALL_SECONDS), probe(settings) as consumer:
                ends = await end_offsets(consumer, settings, places)
                if not runner.in_flight and runner.still_seconds > WATCH_SECONDS:
                    await _pass_markers(runner, settings, consumer, ends)
        except (BrokerUnreachable, TimeoutError) as error:
            log.warning("%s: the lag is unknown: %s", hop.name, error)
            continue
        undelivered = _count_lag(runner, hop, settings, metrics, ends)
        if undelivered == 0 or runner.in_flight or runner.still_seconds < WATCH_SECONDS:
            stuck_since = None
        elif stuck_since is None:
            stuck_since = loop.time()
        elif loop.time() - stuck_since > FETCH_STALL_SECONDS:
            runner.fail(
                NoProgress(
                    f"{hop.name}: {undelivered} events wait, and none was fetched for {FETCH_STALL_SECONDS:.0f} s"
                )
            )


async def run_until_stopped(runner: Runner, stop: asyncio.Event, *work: Coroutine[Any, Any, None]) -> None:
    """Run the work until `stop` is set; raises what went wrong in it or in the runner."""
    await beside(stop.wait(), runner.raise_failure(), *work)
    if runner.failure is not None:  # on the way out
        raise runner.failure


async def _pass_markers(
    runner: Runner, settings: KafkaSettings, consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]
) -> None:
    """Where only transactions' markers are left, there is nothing to wait for."""
    leases = {place: runner.lease(settings.logical(place.topic), place.partition) for place in ends}
    spans = {
        place: (lease.expected, ends[place])
        for place, lease in leases.items()
        if lease is not None and lease.expected < ends[place]
    }
    held = await first_records(consumer, settings, spans)
    for place, (start, end) in spans.items():
        if place not in held:
            runner.passed((settings.logical(place.topic), place.partition), start, end)


def _count_lag(
    runner: Runner, hop: Hop[Any], settings: KafkaSettings, metrics: Metrics, ends: Mapping[TopicPartition, int]
) -> int:
    """Sets the lag of each topic; returns the events that nobody has delivered yet."""
    lags = dict.fromkeys((topic.name for topic in hop.topics), 0)
    undelivered = 0
    for place, end in ends.items():
        topic = settings.logical(place.topic)
        lease = runner.lease(topic, place.partition)
        if lease is not None:
            lags[topic] += max(0, end - lease.committed)
            undelivered += max(0, end - lease.expected)
    for topic, lag in lags.items():
        metrics.lag.labels(hop.name, topic).set(lag)
    return undelivered
