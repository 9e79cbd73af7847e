"""Reads every prompt topic for one lane of the scheduler; a partition that a lane wants no more of is paused."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from schemas import MalformedEvent, Prompt, SourceEnd
from schemas.topics import PROMPTS_PREFIX, first_reader
from streams.scheduler.prompt_lane import PromptLane
from wire.hop.hop import Hop
from wire.hop.processor import Processor
from wire.kafka.committed_offsets import CommittedOffsets
from wire.kafka.log_reader import LogReader
from wire.kafka.records import Outgoing, Place, Record
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail

POLL_SECONDS = 0.1
"""How soon a lane that has room again is read on."""
MAX_POLL_RECORDS = 32


class PromptIntake(Hop[Prompt | SourceEnd]):
    """Offers each prompt to its lane. Publishes nothing: the scheduler admits when it is time."""

    topics = ()

    def __init__(self, name: str, lane: PromptLane) -> None:
        self.name = name
        self._lane = lane

    async def handle(self, event: Prompt | SourceEnd, record: Record) -> Sequence[Outgoing]:
        """Raises MalformedEvent for a prompt on another domain's topic."""
        domain = record.topic.removeprefix(PROMPTS_PREFIX)
        if event.domain == domain:
            self._lane.offer(event, record)
        elif first_reader(record.topic) == self.name:
            raise MalformedEvent(
                f"its domain is `{event.domain}`, but it came on `{record.topic}`: publish it to "
                f"`{PROMPTS_PREFIX}{event.domain}`, or correct its domain"
            )
        return ()


class PromptReader:
    """One lane's reading, from what its consumer group has committed, and its commits."""

    def __init__(
        self,
        settings: KafkaSettings,
        lane: PromptLane,
        processor: Processor[Prompt | SourceEnd],
        offsets: CommittedOffsets,
        log: LogReader,
        on_read: Callable[[], None],
    ) -> None:
        """`on_read` is called when the lane may hold more than before."""
        self._settings = settings
        self._lane = lane
        self._processor = processor
        self._offsets = offsets
        self._log = log
        self._on_read = on_read
        self._places: frozenset[Place] = frozenset()
        self._found = asyncio.Event()
        self._next: dict[Place, int] = {}

    def follow(self, topics: Mapping[str, int]) -> None:
        """Read these prompt topics (logical name → partitions) from now on, beside those read before."""
        places = {(topic, number) for topic, count in topics.items() for number in range(count)}
        if not places <= self._places:
            self._places |= places
            self._found.set()

    async def run(self) -> None:
        """Read until cancelled. Raises StopWorker."""
        while True:
            await self._found.wait()
            self._found.clear()
            for place in sorted(self._places - self._next.keys()):
                self._next[place] = await self._start(place)
            async with Tail(self._settings, self._next) as tail:
                paused: set[Place] = set()
                while not self._found.is_set():
                    self._hold_back(tail, paused)
                    await self._take(await tail.poll(POLL_SECONDS, MAX_POLL_RECORDS))

    async def commit(self) -> None:
        """Commit what the lane has dealt with."""
        floors = {place: self._lane.floor(place) for place in self._lane.places()}
        await self._offsets.commit({place: floor for place, floor in floors.items() if floor is not None})

    async def _start(self, place: Place) -> int:
        committed = await self._offsets.read(place)
        return await self._log.begin_offset(*place) if committed is None else committed

    async def _take(self, records: list[Record]) -> None:
        for record in records:
            await self._processor.process(record)
            self._lane.skip(record)
            self._next[record.topic, record.partition] = record.offset + 1
        if records:
            self._on_read()

    def _hold_back(self, tail: Tail, paused: set[Place]) -> None:
        for place in self._next:
            if self._lane.wants(place) and place in paused:
                tail.resume(*place)
                paused.remove(place)
            elif not self._lane.wants(place) and place not in paused:
                tail.pause(*place)
                paused.add(place)
