"""Reading partitions from given offsets on, without a consumer group: the position is the caller's."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from wire.errors import StoredOffsetOutOfRange
from wire.kafka.clients import broker_errors, close, connect, make_consumer
from wire.kafka.offsets import check_offsets
from wire.kafka.records import Place, Record, record_of
from wire.kafka.settings import KafkaSettings


class Tail:
    """Follows (topic, partition) pairs from `start`, for ever. Use as `async with`.

    Raises StoredOffsetOutOfRange at the start, or later when retention overtakes the reader.
    """

    def __init__(self, settings: KafkaSettings, start: Mapping[Place, int]) -> None:
        self._settings = settings
        self._start = {TopicPartition(settings.name(topic), partition): at for (topic, partition), at in start.items()}
        self._running: AIOKafkaConsumer | None = None

    async def __aenter__(self) -> Self:
        consumer = make_consumer(self._settings, "headwater-tail")
        await connect(consumer, self._settings)
        try:
            await check_offsets(consumer, self._settings, self._start)
        except BaseException:
            await close(consumer)
            raise
        consumer.assign(list(self._start))
        for partition, offset in self._start.items():
            consumer.seek(partition, offset)
        self._running = consumer
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await close(self._consumer)
        self._running = None

    async def poll(self, timeout_seconds: float = 0.5, max_records: int | None = None) -> list[Record]:
        """What has come, in order per partition; empty when nothing did within the time."""
        try:
            with broker_errors(self._settings):
                found = await self._consumer.getmany(timeout_ms=int(timeout_seconds * 1000), max_records=max_records)
        except OffsetOutOfRangeError as error:
            raise StoredOffsetOutOfRange(
                f"the log no longer holds what was to be read next ({error.args[0]}): retention has passed the reader"
            ) from error
        return [record_of(self._settings, raw, raw.timestamp) for records in found.values() for raw in records]

    def pause(self, topic: str, partition: int) -> None:
        """Fetch nothing more from it until `resume`."""
        self._consumer.pause(TopicPartition(self._settings.name(topic), partition))

    def resume(self, topic: str, partition: int) -> None:
        """Undo `pause`."""
        self._consumer.resume(TopicPartition(self._settings.name(topic), partition))

    async def position(self, topic: str, partition: int) -> int:
        """The offset that is read next; beyond transaction markers, so it reaches the end offset."""
        return await self._consumer.position(TopicPartition(self._settings.name(topic), partition))

    @property
    def _consumer(self) -> AIOKafkaConsumer:
        if self._running is None:
            raise RuntimeError("not started: use `async with`")
        return self._running
