"""Events of `trajectories` to the feed, as long as it has room."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from learner.book.feed import Ended, Feed
from learner.training.samples import usable
from schemas.topics import TRAJECTORIES
from wire.kafka.events import EventReader
from wire.kafka.publisher import Publisher
from wire.kafka.records import Record
from wire.kafka.tail import Tail
from wire.metrics import Metrics

ROLE = "learner"
FETCH_RECORDS = 64
"""Of one read: what may be held beyond the feed's own bound."""
IDLE_SECONDS = 2.0
"""While nothing comes: how often whoever waits looks again."""


class Intake:
    """Runs beside the step; `wake` is set when something has come, and by others when there may be room again."""

    def __init__(
        self,
        feed: Feed,
        trajectories: Tail,
        publisher: Publisher,
        metrics: Metrics,
        *,
        vocabulary: int,
        record: Callable[[Sequence[Ended]], None],
    ) -> None:
        """`record` gets the groups that ended, before anything that counts on them."""
        self.wake = asyncio.Event()
        self._feed = feed
        self._trajectories = trajectories
        self._events = EventReader(ROLE, publisher, metrics)
        self._metrics = metrics
        self._vocabulary = vocabulary
        self._record = record

    async def run(self) -> None:
        """Until cancelled. Raises UpgradeFirst, and what the stream raises."""
        while True:
            if self._feed.full:
                await self.look_again()
                self.wake.clear()
                continue
            records = await self._trajectories.poll(max_records=FETCH_RECORDS)
            self._metrics.events_in.labels(ROLE, TRAJECTORIES.name).inc(len(records))
            for record in records:
                await self._offer(record)
            if records:
                self.wake.set()

    async def look_again(self) -> None:
        """Until `wake`, or some seconds; the caller looks at its conditions again either way."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wake.wait(), IDLE_SECONDS)

    async def _offer(self, record: Record) -> None:
        event = await self._events.read(record, TRAJECTORIES)
        if event is None:
            return
        event = usable(event, self._vocabulary)
        position = self._feed.position
        duplicates = position.duplicates_dropped
        self._record(self._feed.offer(event, record.partition, record.offset))
        self._metrics.duplicates_dropped.labels(ROLE).inc(position.duplicates_dropped - duplicates)
