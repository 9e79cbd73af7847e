"""Prompts read and not yet admitted: one lane a purpose, so that evaluation never queues behind training.

The scheduler reads every prompt topic twice, once a lane, each with its own committed offsets; a lane
passes over the other's prompts at once. Within a lane and a partition, prompts are admitted in the
order of the log; among partitions they take turns. Pure: no clock, no I/O.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from schemas import Event, Prompt, Purpose, SourceEnd
from wire.kafka.records import Place, Record


class Waiting(NamedTuple):
    """A prompt next in turn, and where it came from."""

    prompt: Prompt
    place: Place
    offset: int


class PromptLane:
    """Buffers at most `max_buffered` prompts a partition, and knows how far each partition may be committed."""

    def __init__(self, purpose: Purpose, max_buffered: int) -> None:
        self.purpose = purpose
        self.ended: set[tuple[str, str]] = set()
        """(source, domain) of every `SourceEnd` reached: all prompts before it in its partition were taken."""
        self._max_buffered = max_buffered
        self._queues: dict[Place, deque[tuple[int, Prompt | SourceEnd]]] = {}
        self._next_offsets: dict[Place, int] = {}
        self._in_flight: dict[Place, list[int]] = {}
        self._source_ends: dict[Place, int] = {}

    def offer(self, event: Event, record: Record) -> None:
        """Take in one record of a prompt topic. One that was read before changes nothing."""
        place = record.topic, record.partition
        if record.offset < self._next_offsets.get(place, 0):
            return
        self._next_offsets[place] = record.offset + 1
        queue = self._queues.setdefault(place, deque())
        if isinstance(event, SourceEnd):
            if self.purpose == Purpose.TRAIN:
                self._source_ends.setdefault(place, record.offset)
                queue.append((record.offset, event))
                self._pass_source_ends(queue)
        elif isinstance(event, Prompt) and event.purpose == self.purpose:
            queue.append((record.offset, event))

    def skip(self, record: Record) -> None:
        """Note that a record was read, whatever became of it: one that could not be read is in dead letters."""
        place = record.topic, record.partition
        self._next_offsets[place] = max(record.offset + 1, self._next_offsets.get(place, 0))
        self._queues.setdefault(place, deque())

    def wants(self, place: Place) -> bool:
        """Whether to read on there; if not, the shell pauses that partition."""
        return len(self._queues.get(place, ())) < self._max_buffered

    def take(self, may_admit: Callable[[str], bool]) -> Waiting | None:
        """The next prompt whose domain `may_admit`; its partition goes to the end of the turn."""
        for place, queue in self._queues.items():
            if not queue:
                continue
            offset, prompt = queue[0]
            assert isinstance(prompt, Prompt), "a source's end never stays at the head"
            if not may_admit(prompt.domain):
                continue
            queue.popleft()
            self._pass_source_ends(queue)
            self._queues[place] = self._queues.pop(place)
            self._in_flight.setdefault(place, []).append(offset)
            return Waiting(prompt, place, offset)
        return None

    def published(self) -> None:
        """What was taken so far is on the log as generations, or was known before."""
        self._in_flight.clear()

    def floor(self, place: Place) -> int | None:
        """The offset to commit there; None when nothing was read.

        Never past a prompt that is not durably admitted, and never past the first `SourceEnd`: a
        restarted scheduler must read it again to know that the source has ended.
        """
        if place not in self._next_offsets:
            return None
        held = list(self._in_flight.get(place, ()))
        queue = self._queues[place]
        if queue:
            held.append(queue[0][0])
        if place in self._source_ends:
            held.append(self._source_ends[place])
        return min(held, default=self._next_offsets[place])

    def places(self) -> list[Place]:
        """Every partition that was read."""
        return list(self._next_offsets)

    def _pass_source_ends(self, queue: deque[tuple[int, Prompt | SourceEnd]]) -> None:
        while queue and isinstance(queue[0][1], SourceEnd):
            end = queue.popleft()[1]
            assert isinstance(end, SourceEnd)
            self.ended.add((end.source, end.domain))
