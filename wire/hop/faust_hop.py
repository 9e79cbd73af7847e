"""A hop as a Faust stream: dispatch, sandbox worker, reward and collect run here."""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition

from wire.errors import WireError
from wire.hop.faust_app import HopApp
from wire.hop.hop import Hop
from wire.hop.runner import Runner
from wire.hop.shell import LAST_COMMIT_SECONDS, STOP_GRACE_SECONDS, hop_runner, run_until_stopped, watch
from wire.kafka.records import record_of
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics

log = logging.getLogger(__name__)

STOP_SECONDS = 15.0
"""For Faust to stop its services and threads; it has been seen to hang after a crash."""


async def run_faust_hop(
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
        app = HopApp(hop, settings, runner, instance_id=instance_id, state_directory=state_directory)
        _add_agent(app, hop, settings, runner)
        async with _stopping(app, runner):
            await run_until_stopped(
                runner,
                stop,
                _live(app),
                watch(runner, hop, settings, metrics, lambda: _assignment(app)),
            )


def _add_agent(app: HopApp, hop: Hop[Any], settings: KafkaSettings, runner: Runner) -> None:
    topic = app.topic(
        *(settings.name(topic.name) for topic in hop.topics), key_serializer="raw", value_serializer="raw"
    )

    async def consume(stream: Any) -> None:
        # no exception may escape from here: Faust would acknowledge the event and go on
        async for event in stream.noack().events():
            message = event.message
            # in this very step of the loop: a record from before a rebalance must not get a lease from after it
            lease = runner.lease(settings.logical(message.topic), message.partition)
            if lease is not None:
                await runner.deliver(lease, record_of(settings, message, int(message.timestamp * 1000)))

    app.agent(topic, name=hop.name)(consume)


async def _live(app: HopApp) -> None:
    """Start Faust and stay while it is well. Raises what it crashed of."""
    await app.start()
    await app.wait_until_stopped()
    raise app.crash_reason or WireError(f"{app.hop.name}: Faust stopped by itself")


@contextlib.asynccontextmanager
async def _stopping(app: HopApp, runner: Runner) -> AsyncGenerator[None]:
    """Afterwards: in-flight events ended, the last offsets committed, Faust stopped."""
    try:
        yield
    finally:
        await runner.drain(STOP_GRACE_SECONDS if runner.failure is None else 0)
        # threads of a crashed Faust can hang the process for ever, deaf to signals
        watchdog = threading.Timer(STOP_SECONDS, _end_process, [app.hop.name])
        watchdog.daemon = True
        watchdog.start()
        try:
            if app.started and not app.crashed:
                try:
                    async with asyncio.timeout(LAST_COMMIT_SECONDS):
                        await app.consumer.commit()
                except TimeoutError:
                    log.warning("%s: the last offsets are not committed (their events will be read again)", app.label)
            await app.stop()
        finally:
            watchdog.cancel()


def _assignment(app: HopApp) -> list[TopicPartition]:
    if not app.started:
        return []
    return [TopicPartition(place.topic, place.partition) for place in app.consumer.assignment()]


def _end_process(name: str) -> None:
    log.critical("%s: Faust did not stop within %.0f s; the process ends here", name, STOP_SECONDS)
    os._exit(70)
