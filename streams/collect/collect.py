"""Collect: a group's generation, rollouts and rewards in, its end out: `Trajectory` or `GroupDropped`.

    generations ─┐
    rollouts ────┼──► Gather (pure) ──► GroupDropped, Drained ──────────────────────► trajectories
    rewards ─────┘         └──► Close ──► rollouts read by offset ──► Trajectory ──► (or evaluations)

Gather keeps rewards and offsets; the tokens stay on the log until their group is complete.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from schemas import Cancel, Drained, DropReason, EventTooLarge, Generation, Reward, Rollout
from schemas.codec import encode
from schemas.topics import GENERATIONS, REWARDS, ROLLOUTS, topic_spec
from streams.collect.gather import Close, Gather
from streams.collect.group import assemble, give_up
from wire.errors import StoredOffsetOutOfRange
from wire.hop.hop import Hop
from wire.kafka.events import event_of
from wire.kafka.log_reader import LogReader
from wire.kafka.records import Outgoing, Place, Record
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics

log = logging.getLogger(__name__)

NAME = "collect"


class Collect(Hop[Generation | Cancel | Drained | Rollout | Reward]):
    """The shell around Gather. Its floors are Gather's: the log is the state (invariant 10)."""

    name = NAME
    topics = (GENERATIONS, ROLLOUTS, REWARDS)

    def __init__(self, settings: KafkaSettings, metrics: Metrics, clock: Callable[[], float] = time.time) -> None:
        """`clock`: Unix seconds."""
        self._reader = LogReader(settings)
        self._metrics = metrics
        self._clock = clock
        self._gather = Gather()
        self._counted = 0

    async def start(self) -> None:
        await self._reader.start()

    async def stop(self) -> None:
        await self._reader.stop()

    def assigned(self, starts: Mapping[Place, int]) -> None:
        # the three topics of a number come and go together
        for number in {number for _, number in starts}:
            self._gather.assigned(number, starts.get((GENERATIONS.name, number)))

    def revoked(self, partitions: Iterable[Place]) -> None:
        for number in {number for _, number in partitions}:
            self._gather.revoked(number)

    async def handle(
        self, event: Generation | Cancel | Drained | Rollout | Reward, record: Record
    ) -> Sequence[Outgoing]:
        return await self._ends(self._gather.handle(event, record, self._clock()))

    async def tick(self, now: float) -> Sequence[Outgoing]:
        return await self._ends(self._gather.tick(now))

    def floor(self, topic: str, partition: int) -> int | None:
        return self._gather.floor(topic, partition)

    def published(self, outs: Sequence[Outgoing]) -> None:
        self._gather.published(outs)

    async def _ends(self, decided: Sequence[Outgoing | Close]) -> list[Outgoing]:
        dropped = self._gather.duplicates_dropped + self._gather.late_dropped + self._gather.overflow_dropped
        self._metrics.duplicates_dropped.labels(NAME).inc(dropped - self._counted)
        self._counted = dropped
        return [await self._trajectory(end) if isinstance(end, Close) else end for end in decided]

    async def _trajectory(self, close: Close) -> Outgoing:
        """The group with its tokens; dropped where they are gone or too many for one event."""
        try:
            records = await self._reader.read(ROLLOUTS.name, close.partition, close.offsets)
            out = assemble(close, {record.offset: event_of(record, ROLLOUTS) for record in records})
            if sum(len(record.value) for record in records) > topic_spec(out.topic).max_event_bytes // 2:
                encode(out.event, topic_spec(out.topic))
        except (StoredOffsetOutOfRange, EventTooLarge) as error:
            log.error("group %s cannot be put together: %s", close.blank.group_id, error)
            return give_up(close, DropReason.BELOW_MINIMUM, str(error))
        return out
