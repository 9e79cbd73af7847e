"""Collect: the real Gather, one event at a time, with its floors."""

from schemas import Rollout
from streams.collect.gather import End, Gather
from streams.collect.group import Close, assemble
from tests.simulation.log import record
from tests.simulation.world import Move, Role, World
from wire.hop.watermark import Watermark
from wire.kafka.records import Outgoing

TOPICS = ("generations", "rollouts", "rewards")


class CollectRole(Role):
    """One worker with all partitions; a rebalance takes one away and gives it back."""

    name = "collect"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.crash()

    @property
    def at_rest(self) -> bool:
        """Whether nothing is open and nothing unread."""
        return self.gather.open_groups == 0 and not self._ready() and not self._outs

    def moves(self) -> list[Move]:
        if self._outs:
            return [self._publish]
        moves: list[Move] = []
        ready = self._ready()
        if ready:
            moves += [lambda: self._read(*self.rng.choice(ready))] * 3
        if self._tick_due():
            moves.append(self._tick)
        if self._handled:
            moves.append(self._commit)
        return moves

    def crash(self) -> None:
        self.gather = Gather()
        self._positions: dict[tuple[str, int], int] = {}
        self._watermarks: dict[tuple[str, int], Watermark] = {}
        self._outs: list[Outgoing] = []
        self._sent: list[Outgoing] = []
        self._current: tuple[str, int, int] | None = None
        self._last_tick = 0.0
        self._handled = False
        for partition in range(self.world.setting.partitions):
            self._assign(partition)

    def rebalance(self) -> None:
        partition = self.rng.randrange(self.world.setting.partitions)
        if self._current is not None and self._current[1] == partition:
            self._current = None  # it is still published, and not acknowledged
        self.gather.revoked(partition)
        self._assign(partition)

    def _assign(self, partition: int) -> None:
        committed = self.world.log.committed
        for topic in TOPICS:
            self._positions[topic, partition] = committed[self.name, topic, partition]
            self._watermarks[topic, partition] = Watermark()
        known = self.rng.random() < 0.5
        self.gather.assigned(partition, self._positions["generations", partition] if known else None)

    def _ready(self) -> list[tuple[str, int]]:
        log = self.world.log
        return [key for key, position in self._positions.items() if position < log.end(*key)]

    def _read(self, topic: str, partition: int) -> None:
        offset = self._positions[topic, partition]
        self._positions[topic, partition] += 1
        self._watermarks[topic, partition].delivered(offset)
        event = self.world.log.events(topic, partition)[offset]
        ends = self.gather.handle(event, record(topic, partition, offset), self.world.now)
        self._current = (topic, partition, offset)
        if any(isinstance(end, Close) for end in ends) and self.world.odds(0.1):
            self.tell("rollouts cannot be read")
            ends = []
        self._begin(ends)

    def _tick_due(self) -> bool:
        return self.world.now > self._last_tick + 0.5

    def _tick(self) -> None:
        self._last_tick = self.world.now
        self._current = None
        ends = self.gather.tick(self.world.now)
        self.world.in_vain = not ends
        self._begin(ends)

    def _begin(self, ends: list[End]) -> None:
        self._sent = []
        self._outs = [self._assembled(end) if isinstance(end, Close) else end for end in ends]
        if not self._outs:
            self._done()

    def _assembled(self, close: Close) -> Outgoing:
        events = self.world.log.events("rollouts", close.partition)
        found = {offset: events[offset] for offset in close.offsets}
        return assemble(close, {offset: event for offset, event in found.items() if isinstance(event, Rollout)})

    def _publish(self) -> None:
        out = self._outs.pop(0)
        self.world.publish(self, out)
        self._sent.append(out)
        if not self._outs:
            self._done()

    def _done(self) -> None:
        self.gather.published(self._sent)
        self._handled = self._handled or self._current is not None or bool(self._sent)
        if self._current is not None:
            topic, partition, offset = self._current
            self._watermarks[topic, partition].done(offset)
        self._current = None

    def _committable(self) -> dict[tuple[str, int], int]:
        committed = self.world.log.committed
        found: dict[tuple[str, int], int] = {}
        for (topic, partition), watermark in self._watermarks.items():
            offset = watermark.committable(self.gather.floor(topic, partition))
            if offset is not None and offset != committed[self.name, topic, partition]:
                found[topic, partition] = offset
        return found

    def _commit(self) -> None:
        self._handled = False
        for (topic, partition), offset in self._committable().items():
            if not self.world.odds(0.1):  # the commit of one partition is lost
                self.world.commit(self, topic, partition, offset)
