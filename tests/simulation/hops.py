"""The stateless hops: dispatch, a grader in place of the sandbox, reward. Many events in flight at once."""

from collections.abc import Callable
from random import Random

from schemas import Event, Execution, Rollout, TestVerdict, Unscorable, UnscorableReason, Verdict, VerdictKind
from streams.grading.dispatch import dispatch
from streams.grading.reward import reward_of
from streams.grading.sandbox_worker import fault_of
from tests.simulation.world import Move, Role, World
from wire.hop.watermark import Watermark
from wire.kafka.records import Outgoing

Handler = Callable[[Event], list[Outgoing]]

MAX_IN_FLIGHT = 4


class _InFlight:
    def __init__(self, partition: int, offset: int, event: Event) -> None:
        self.partition = partition
        self.offset = offset
        self.event = event
        self.published = False


class HopRole(Role):
    """One consumer group around a pure function; a crash or a rebalance takes some of its partitions."""

    def __init__(self, world: World, name: str, topic: str, handler: Handler) -> None:
        super().__init__(world)
        self.name = name
        self._topic = topic
        self._handler = handler
        self._positions: dict[int, int] = {}
        self._watermarks: dict[int, Watermark] = {}
        self._in_flight: list[_InFlight] = []
        self.crash()

    def moves(self) -> list[Move]:
        moves: list[Move] = []
        log = self.world.log
        if len(self._in_flight) < MAX_IN_FLIGHT:
            ready = [p for p, position in self._positions.items() if position < log.end(self._topic, p)]
            if ready:
                moves.append(lambda: self._deliver(self.rng.choice(ready)))
        if self._in_flight:
            moves += [self._advance] * 2
        for partition, watermark in self._watermarks.items():
            committable = watermark.committable()
            if committable is not None and committable > log.committed[self.name, self._topic, partition]:
                moves.append(lambda p=partition: self._commit(p))
        return moves

    def crash(self) -> None:
        self._in_flight = []
        for partition in range(self.world.log.count(self._topic)):
            self._assign(partition)

    def rebalance(self) -> None:
        """What is in flight in the lost partition is still published, and its offset is not committed."""
        self._assign(self.rng.choice(list(self._positions)))

    def _assign(self, partition: int) -> None:
        self._positions[partition] = self.world.log.committed[self.name, self._topic, partition]
        self._watermarks[partition] = Watermark()
        for entry in self._in_flight:
            if entry.partition == partition:
                entry.partition = -1

    def _deliver(self, partition: int) -> None:
        offset = self._positions[partition]
        self._positions[partition] += 1
        self._watermarks[partition].delivered(offset)
        self._in_flight.append(_InFlight(partition, offset, self.world.log.events(self._topic, partition)[offset]))

    def _advance(self) -> None:
        entry = self.rng.choice(self._in_flight)
        if not entry.published:
            for out in self._handler(entry.event):
                self.world.publish(self, out)
            entry.published = True
            return
        self._in_flight.remove(entry)
        if entry.partition >= 0:
            self._watermarks[entry.partition].done(entry.offset)

    def _commit(self, partition: int) -> None:
        self.world.commit(self, self._topic, partition, self._watermarks[partition].committable())


def dispatch_role(world: World) -> HopRole:
    def handle(event: Event) -> list[Outgoing]:
        assert isinstance(event, Rollout)
        return [dispatch(event)]

    return HopRole(world, "dispatch", "rollouts", handle)


def grader_role(world: World) -> HopRole:
    """A grader that now and then fails, and now and then never answers."""

    def handle(event: Event) -> list[Outgoing]:
        assert isinstance(event, Execution)
        if world.odds(0.03):
            world.oracle.lost.add((event.context.group_id, event.context.sample_index, event.context.digest))
            return []
        if world.odds(0.05):
            return [fault_of(event, Unscorable(UnscorableReason.GRADER_FAULT, "jail died"))]
        return [Outgoing("verdicts", event.context.group_id, graded(event))]

    return HopRole(world, "sandbox", "executions", handle)


def graded(execution: Execution) -> Verdict:
    """The same program has the same verdict, whoever judges it: a draw from the digest."""
    passed = Random(execution.context.digest).randint(0, 3)
    kinds = [VerdictKind.ACCEPTED] * passed + [VerdictKind.WRONG_ANSWER] * (3 - passed)
    return Verdict(
        run_id=execution.run_id, purpose=execution.purpose, execution_id=execution.execution_id,
        context=execution.context, kind=kinds[-1], tests=tuple(TestVerdict(kind=kind) for kind in kinds),
    )  # fmt: skip


def reward_role(world: World) -> HopRole:
    def handle(event: Event) -> list[Outgoing]:
        assert isinstance(event, Verdict)
        reward = reward_of(event)
        return [Outgoing("rewards", reward.context.group_id, reward)]

    return HopRole(world, "reward", "verdicts", handle)
