"""Collect's decisions: which member belongs to which group, when a group is over, and how it ends.

Pure: no clock, no I/O. A group lives in one partition number of `generations`, `rollouts` and `rewards`:

    Generation ─► open ─┬─ all members have come ──► Close, or GroupDropped (zero_spread, below_minimum, …)
                        ├─ its deadline ───────────► Close of what is there, or GroupDropped(deadline)
                        └─ Cancel ─────────────────► GroupDropped(cancelled | run_ended)

A member is a rollout and the reward of the same (group, sample index, digest); the first rollout of an
index in log order counts. Gather keeps rewards and rollout offsets only; the shell reads the rollouts of
a `Close` by offset and calls `streams.collect.group.assemble`.

**The log is the state.** `floor` keeps uncommitted what a successor needs: from the lowest generation
not ended on, all generations, and from the lowest member of any of those groups on, all members; also
of the groups among them that have ended, so that a replay ends these again at once, and does not wait
for members that are never read again. Such a second end is known by its number at the learner.

An end is not over when it is decided but when it is published: the shell says so (`published`); until
then the group holds its floors, and `tick` returns the end again.
"""

from collections import deque
from collections.abc import Sequence

from schemas import Cancel, Drained, Event, Generation, GroupDropped, Purpose, Reward, Rollout, Trajectory
from schemas.topics import GENERATIONS, REWARDS, ROLLOUTS, TRAJECTORIES
from streams.collect.group import Close, Group
from wire.kafka.records import Outgoing, Record

MAX_WAITING_MEMBERS = 20_000
"""Members held in one partition until their generation is read, which is far sooner than so many are made.
Beyond this they are dropped and counted, and their group ends by its deadline."""
MAX_REMEMBERED_ENDS = 4_096
"""Group ids remembered in one partition after their end, against a generation that a producer's retry doubled."""

End = Outgoing | Close


class _Entry:
    """One record of `generations` that a successor may have to read again: a group or a `Drained`."""

    def __init__(self, offset: int, group: Group | None = None, drained: Drained | None = None) -> None:
        self.offset = offset
        self.group = group
        self.drained = drained
        self.is_train = group is not None and group.blank.purpose == Purpose.TRAIN
        self.end: End | None = None
        """Decided; `settled` once published."""
        self.settled = False
        self.lowest: dict[str, int] = {}
        """Topic -> lowest offset of the members of the group."""


class _Partition:
    def __init__(self, generations_start: int | None = None) -> None:
        self.generations_next = generations_start
        """None: the start is unknown and nothing was read."""
        self.entries: deque[_Entry] = deque()
        """In log order; the first is never settled."""
        self.open: dict[str, _Entry] = {}
        self.ended: dict[str, None] = {}
        """Ids of groups that have ended, oldest first."""
        self.waiting: list[tuple[str, int, Rollout | Reward]] = []
        """Members ahead of their generation: topic, offset, event."""

    def has_read(self, generation_offset: int) -> bool:
        return self.generations_next is not None and generation_offset < self.generations_next

    def forget_settled(self) -> None:
        while self.entries and self.entries[0].settled:
            self.entries.popleft()


class Gather:
    """The state of one worker.

    Memory: open groups are bounded by admission, waiting members and remembered ends by the limits
    above, and entries of ended groups by what is admitted while the oldest group is open, at most its
    deadline.
    """

    def __init__(self) -> None:
        self.duplicates_dropped = 0
        """Second rollouts of an index, second rewards, rewards of a rollout that does not count."""
        self.late_dropped = 0
        """Members that came after their group's end."""
        self.overflow_dropped = 0
        """Members beyond MAX_WAITING_MEMBERS."""
        self._partitions: dict[int, _Partition] = {}

    @property
    def open_groups(self) -> int:
        return sum(len(state.open) for state in self._partitions.values())

    def assigned(self, partition: int, generations_start: int | None = None) -> None:
        """A partition number is this worker's now; `generations_start`: the offset it reads on from, if known."""
        self._partitions[partition] = _Partition(generations_start)

    def revoked(self, partition: int) -> None:
        """Drop what is held: the next owner reads it again."""
        self._partitions.pop(partition, None)

    def handle(self, event: Event, record: Record, now: float) -> list[End]:
        """Take in one record of `generations`, `rollouts` or `rewards`. `now`: Unix seconds."""
        state = self._partitions.setdefault(record.partition, _Partition())
        outs: list[End] = []
        if record.topic == GENERATIONS.name:
            outs = self._on_generations(state, event, record, now)
        elif isinstance(event, Rollout | Reward) and event.purpose != Purpose.SCORE:
            outs = self._on_member(state, event, record.offset, record.partition)
        return outs + _drained(state, record.partition)

    def tick(self, now: float) -> list[End]:
        """Ends by deadline, ends that were not published, and each `Drained` whose groups have all ended."""
        outs: list[End] = []
        for number, state in self._partitions.items():
            outs += [entry.end for entry in state.entries if entry.end is not None and not entry.settled]
            for entry in list(state.open.values()):
                if entry.group is not None and entry.group.is_over(now):
                    outs.append(_end(state, entry, entry.group.close_at_deadline(number)))
            outs += _drained(state, number)
        return outs

    def published(self, outs: Sequence[Outgoing]) -> None:
        """These are durable: what they end may be committed."""
        for out in outs:
            for number, state in self._partitions.items():
                for entry in state.entries:
                    entry.settled = entry.settled or (entry.end is not None and _is_end(out, entry.end, number))
                state.forget_settled()

    def floor(self, topic: str, partition: int) -> int | None:
        """The lowest offset that a successor must read again; None: no hold."""
        state = self._partitions.get(partition)
        if state is None:
            return None
        if topic == GENERATIONS.name:
            return state.entries[0].offset if state.entries else None
        held = [entry.lowest[topic] for entry in state.entries if topic in entry.lowest]
        held += [offset for waiting_topic, offset, _ in state.waiting if waiting_topic == topic]
        return min(held, default=None)

    def _on_generations(self, state: _Partition, event: Event, record: Record, now: float) -> list[End]:
        if state.has_read(record.offset):
            return []
        state.generations_next = record.offset + 1
        outs: list[End] = []
        if isinstance(event, Generation) and event.group_id not in state.open and event.group_id not in state.ended:
            entry = _Entry(record.offset, Group(event, opened_at=now))
            state.entries.append(entry)
            state.open[event.group_id] = entry
        elif isinstance(event, Cancel) and event.group_id in state.open:
            entry = state.open[event.group_id]
            assert entry.group is not None
            outs.append(_end(state, entry, entry.group.drop(event.drop_reason, record.partition)))
        elif isinstance(event, Drained):
            state.entries.append(_Entry(record.offset, drained=event))
        waiting, state.waiting = state.waiting, []
        for _, offset, member in waiting:
            outs += self._on_member(state, member, offset, record.partition)
        return outs

    def _on_member(self, state: _Partition, event: Rollout | Reward, offset: int, partition: int) -> list[End]:
        topic, of = (ROLLOUTS.name, event) if isinstance(event, Rollout) else (REWARDS.name, event.context)
        entry = state.open.get(of.group_id)
        if entry is None:
            if of.group_id in state.ended or of.generation_offset is None or state.has_read(of.generation_offset):
                self.late_dropped += 1
            elif len(state.waiting) >= MAX_WAITING_MEMBERS:
                self.overflow_dropped += 1
            else:
                state.waiting.append((topic, offset, event))
            return []
        group = entry.group
        assert group is not None, "an open entry has a group"
        joined = group.add_rollout(event, offset) if isinstance(event, Rollout) else group.add_reward(event)
        if not joined:
            self.duplicates_dropped += 1
            return []
        entry.lowest[topic] = min(offset, entry.lowest.get(topic, offset))
        return [_end(state, entry, group.close(partition))] if group.is_complete else []


def _end(state: _Partition, entry: _Entry, end: End) -> End:
    assert entry.group is not None
    group_id = entry.group.blank.group_id
    del state.open[group_id]
    state.ended[group_id] = None
    if len(state.ended) > MAX_REMEMBERED_ENDS:
        del state.ended[next(iter(state.ended))]
    entry.group = None
    entry.end = end
    return end


def _drained(state: _Partition, partition: int) -> list[End]:
    """Copies of each `Drained` with no train group before it whose end is not published."""
    outs: list[End] = []
    for entry in state.entries:
        if entry.is_train and not entry.settled:
            break
        if entry.drained is not None and entry.end is None:
            entry.end = Outgoing(TRAJECTORIES.name, entry.drained.run_id, entry.drained, partition)
            outs.append(entry.end)
    return outs


def _is_end(out: Outgoing, end: End, partition: int) -> bool:
    """Whether the published `out` is the decided `end` of an entry in `partition`."""
    if isinstance(out.event, Drained):
        return isinstance(end, Outgoing) and (out.event, out.partition) == (end.event, partition)
    if not isinstance(out.event, Trajectory | GroupDropped):
        return False
    if isinstance(end, Close):
        return end.blank.group_id == out.event.group_id
    return isinstance(end.event, Trajectory | GroupDropped) and end.event.group_id == out.event.group_id
