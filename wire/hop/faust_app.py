"""Faust, with the parts replaced that decide what may be committed and how the broker is spoken to.

What Faust does here: the consumer in a thread of its own, group membership, rebalances, buffers and the
stream. What it does not: acknowledge (see `HopConsumer`), produce (`wire.kafka.publisher` does), make its own
client (`wire.kafka.clients` does), keep tables, elect a leader, declare topics, serve HTTP.

Checked against faust-streaming 0.15.3, which is pinned: these are its private methods.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import faust
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition
from faust.app.base import BootStrategy
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP

from wire.hop.hop import Hop
from wire.hop.runner import Runner
from wire.hop.shell import COMMIT_SECONDS, start_offsets
from wire.kafka.clients import (
    HEARTBEAT_SECONDS,
    MAX_POLL_SECONDS,
    REBALANCE_TIMEOUT_SECONDS,
    REQUEST_TIMEOUT_SECONDS,
    SESSION_TIMEOUT_SECONDS,
    make_consumer,
)
from wire.kafka.records import Place
from wire.kafka.settings import KafkaSettings

FETCH_RECORDS = 128
"""Records taken from the client at once. They are in memory by then: its fetch size is the bound. With 8 the hop
between threads cost most of the time."""
BUFFER_EVENTS = 128
"""Events that wait in memory for a slot; the next one is not taken from the fetched."""


class _ConsumerThread(AIOKafkaConsumerThread):
    """Makes its client in `wire.kafka.clients`: security, committed reads, static membership, and partitions of
    the same number for the same member (Faust's own choice without tables is round robin over topics)."""

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        app = self.app
        assert isinstance(app, HopApp)
        return make_consumer(
            app.settings,
            f"headwater-{app.hop.name}",
            consumer_group=app.hop.name,
            instance_id=app.instance_id,
            max_records=FETCH_RECORDS,
        )

    async def committed(self, partitions: set[TP]) -> dict[TopicPartition, int | None]:
        """What the group has committed of each."""
        return await self.call_thread(self._committed, partitions)

    async def _committed(self, partitions: set[TP]) -> dict[TopicPartition, int | None]:
        consumer = self._ensure_consumer()
        places = [TopicPartition(partition.topic, partition.partition) for partition in partitions]
        return {place: await consumer.committed(place) for place in places}


class HopConsumer(Consumer):
    """Commits what the runner's watermarks say, and nothing else.

    Faust computes the offset from the acks it has seen. That passes an event still in flight when
    nothing older was committed, or when an ack is lost to an exception [faust-streaming 606, 189, 527].
    So Faust's acks play no part: the stream runs with `noack()`, nobody acknowledges, and the offsets
    come from `Runner.committable`.
    """

    _thread: _ConsumerThread  # pyright: ignore[reportIncompatibleVariableOverride]

    def _new_consumer_thread(self) -> _ConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def force_commit(self, topics: Any = None, start_new_transaction: bool = True) -> bool:
        """Every commit of Faust comes through here: its timer, its stop."""
        return await self._commit_runner(await self._runner.committable())

    def _new_offset(self, tp: TP) -> int | None:
        return self._runner.committable_now().get(self._partition(tp))

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Nothing to note: the watermark counts over what was delivered."""

    def on_buffer_full(self, tp: TP) -> None:
        """A full buffer holds the next record back by itself. Faust would pause its partition, and once all
        are paused look again only after a second: 40 events a second, measured."""

    def verify_event_path(self, now: float, tp: TP) -> None:
        """`wire.hop.shell.watch` does it, and ends the worker instead of logging."""

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        # handlers do not hold up a rebalance: what is in flight is dropped, and read again by the next owner
        await self._commit_runner(self._runner.committable_now())
        await self._runner.revoked([self._partition(tp) for tp in revoked])
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        try:
            starts = await start_offsets(self._app.settings, await self._thread.committed(assigned)) if assigned else {}
        except Exception as error:  # noqa: BLE001 - aiokafka would log it and go on; the runner ends the worker
            self._runner.fail(error)
            return
        self._runner.assigned(starts)
        await super().on_partitions_assigned(assigned, generation_id)  # from here on records flow

    async def _commit_runner(self, offsets: dict[Place, int]) -> bool:
        settings = self._app.settings
        by_place: Mapping[TP, int] = {
            TP(settings.name(topic), partition): offset for (topic, partition), offset in offsets.items()
        }
        if not by_place or not await self._commit_offsets(by_place):
            return False
        self._runner.committed(offsets)
        return True

    def _partition(self, tp: TP) -> Place:
        return self._app.settings.logical(tp.topic), tp.partition

    @property
    def _app(self) -> "HopApp":
        assert isinstance(self.app, HopApp)
        return self.app

    @property
    def _runner(self) -> Runner:
        return self._app.runner


class _Transport(Transport):
    Consumer: ClassVar[type[HopConsumer]] = HopConsumer  # pyright: ignore[reportIncompatibleVariableOverride]


class _Boot(BootStrategy):
    enable_web = False
    enable_kafka_producer = False


class HopApp(faust.App):
    """One hop as a Faust app: its own consumer group, no web, no producer, no tables."""

    BootStrategy = _Boot

    def __init__(
        self, hop: Hop[Any], settings: KafkaSettings, runner: Runner, *, instance_id: str, state_directory: Path
    ) -> None:
        self.hop = hop
        self.settings = settings
        self.runner = runner
        self.instance_id = instance_id
        super().__init__(
            settings.name(hop.name),
            autodiscover=False,
            broker=f"aiokafka://{settings.bootstrap.split(',')[0]}",  # parsed; the client is ours
            broker_commit_interval=COMMIT_SECONDS,
            broker_heartbeat_interval=HEARTBEAT_SECONDS,
            broker_max_poll_interval=MAX_POLL_SECONDS,
            broker_rebalance_timeout=REBALANCE_TIMEOUT_SECONDS,
            broker_request_timeout=REQUEST_TIMEOUT_SECONDS,
            broker_session_timeout=SESSION_TIMEOUT_SECONDS,
            consumer_auto_offset_reset="earliest",
            datadir=str(state_directory / "faust"),
            key_serializer="raw",
            store="memory://",
            stream_buffer_maxsize=BUFFER_EVENTS,
            stream_wait_empty=False,  # see HopConsumer.on_partitions_revoked
            table_standby_replicas=0,
            topic_allow_declare=False,
            topic_disable_leader=True,
            value_serializer="raw",
            web_enabled=False,
        )

    def _new_transport(self) -> Transport:
        return _Transport(self.conf.broker_consumer, self)
