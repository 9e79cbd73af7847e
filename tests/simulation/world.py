"""One simulated run: every role on one log, in one thread, from one seed.

A step lets one role make one small move (read, handle, publish one event, commit), so that a crash can fall
between any two. First comes chaos: crashes, rebalances, doubled and lost events, cancels, pauses, jumps of
the clock, false deaths of the learner, a new log. Then calm, in which everything must come to its end.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from schemas import Event
from tests.simulation.log import Log
from tests.simulation.oracle import Oracle, Violation
from wire.kafka.records import Outgoing

Move = Callable[[], None]

RUN = "run"
MAX_CALM_ROUNDS = 2_000


@dataclass(frozen=True)
class Setting:
    """What a seed draws once."""

    partitions: int
    batch_groups: int
    max_staleness: int
    group_size: int
    num_prompts: int
    max_updates: int | None
    """None: the run ends with its sources."""
    chaos_steps: int
    trouble: float
    """Scales how often things go wrong."""
    new_log_at: int | None

    @classmethod
    def draw(cls, rng: Random) -> "Setting":
        by_updates = rng.random() < 0.4
        steps = rng.randint(500, 2000)
        return cls(
            partitions=rng.randint(1, 3),
            batch_groups=rng.randint(1, 3),
            max_staleness=rng.randint(0, 2),
            group_size=rng.randint(2, 3),
            num_prompts=rng.randint(8, 24),
            max_updates=rng.randint(2, 6) if by_updates else None,
            chaos_steps=steps,
            trouble=rng.choice((0.3, 1.0, 2.0)),
            new_log_at=rng.randint(50, steps) if rng.random() < 0.15 else None,
        )


class Role(ABC):
    """A process. Its state is gone when it crashes; what it finds on the log and on disk is not."""

    name: str

    def __init__(self, world: "World") -> None:
        self.world = world
        self.rng = world.rng

    @abstractmethod
    def moves(self) -> list[Move]:
        """What it could do now; one of them is done."""

    @abstractmethod
    def crash(self) -> None:
        """Lose everything that is not durable, and start again."""

    def rebalance(self) -> None:  # noqa: B027 - not everyone has a consumer group
        """Some of its partitions go to another member of its consumer group."""

    def tell(self, *what: object) -> None:
        self.world.history.append((self.world.now, self.name, *what))


class World:
    """The run. `history` is kept as tuples and only formatted when a seed fails."""

    def __init__(self, seed: int) -> None:
        from tests.simulation.collect import CollectRole
        from tests.simulation.hops import dispatch_role, grader_role, reward_role
        from tests.simulation.learner import LearnerRole
        from tests.simulation.people import People
        from tests.simulation.rollouts import RolloutRole
        from tests.simulation.scheduler import SchedulerRole

        self.seed = seed
        self.rng = Random(seed)
        self.setting = Setting.draw(self.rng)
        self.now = 1000.0
        self.calm = False
        self.in_vain = False
        """Set by a move that found nothing to do."""
        self.history: list[tuple[object, ...]] = []
        self.oracle = Oracle(self.setting.batch_groups, self.setting.max_staleness)
        self.logs = 0
        self.new_log()
        self.learner = LearnerRole(self)
        self.scheduler = SchedulerRole(self)
        self.people = People(self)
        self.collect = CollectRole(self)
        self.rollout = RolloutRole(self)
        self.hops = [dispatch_role(self), grader_role(self), reward_role(self)]
        self.roles: list[Role] = [
            self.learner, self.scheduler, self.people, *[self.collect, self.rollout] * 2, *self.hops,
        ]  # fmt: skip

    def new_log(self) -> None:
        self.logs += 1
        self.log = Log(f"log{self.logs}", self.setting.partitions)
        self.oracle.new_log(self.log)

    def odds(self, share: float) -> bool:
        """Whether trouble comes; never in calm."""
        return not self.calm and self.rng.random() < share * self.setting.trouble

    def publish(self, who: Role, out: Outgoing, *, exact: bool = False) -> int:
        """Append, now and then twice (a producer's retry); returns the first offset."""
        first = -1
        for _ in range(1 if exact or not self.odds(0.03) else 2):
            partition, offset = self.log.append(out)
            who.tell("publish", out.topic, partition, offset, out.event)
            self.oracle.appended(out.topic, partition, offset, out.event)
            first = offset if first < 0 else first
        return first

    def commit(self, who: Role, topic: str, partition: int, offset: int | None) -> None:
        if offset is None:
            return
        key = (who.name, topic, partition)
        before = self.log.committed[key]
        if offset != before:
            who.tell("commit", topic, partition, offset)
            self.oracle.committed(who.name, topic, partition, before, offset, self.now)
            self.log.committed[key] = offset

    def run(self) -> None:
        """Raises Violation."""
        for step in range(self.setting.chaos_steps):
            if step == self.setting.new_log_at:
                self._lose_the_log()
            self._trouble()
            if not self._step(self.rng.choice(self.roles)):
                self._step(self.rng.choice(self.roles))
            if self.learner.finished:
                break
        self.calm = True
        self.people.end_trouble()
        self._settle()
        self.oracle.at_rest(self)

    def _step(self, role: Role) -> bool:
        moves = role.moves()
        if not moves:
            return False
        self.in_vain = False
        self.rng.choice(moves)()
        self.now += 0.05
        self.oracle.after_step(self)
        return not self.in_vain

    def _settle(self) -> None:
        idle = 0
        for _ in range(MAX_CALM_ROUNDS):
            moved = [self._step(role) for role in dict.fromkeys(self.roles)]
            if any(moved):
                idle = 0
                continue
            if self.learner.finished and self.collect.at_rest and idle > 1:
                return
            idle += 1
            self.now += 20.0  # nothing moves: let deadlines pass
            if idle > 20:
                break
        raise Violation("the run never comes to its end (invariant 3)")

    def _trouble(self) -> None:
        if self.odds(0.008):
            role = self.rng.choice(self.roles)
            role.tell("CRASH")
            role.crash()
        if self.odds(0.012):
            role = self.rng.choice([self.collect, self.rollout, *self.hops])
            role.tell("REBALANCE")
            role.rebalance()
        if self.odds(0.003):
            self.learner.false_death()
        if self.learner.closing and self.odds(0.02):  # the end is short: see that it is cut off often enough
            self.learner.tell("CRASH")
            self.learner.crash()
        if self.odds(0.004):
            self.now += self.rng.choice((5.0, 40.0))

    def _lose_the_log(self) -> None:
        self.people.tell("NEW LOG")
        self.new_log()
        for role in dict.fromkeys(self.roles):
            role.crash()

    def story(self) -> str:
        """The history, one line a move."""
        lines = [f"{when:8.2f} {' '.join(_short(part) for part in what)}" for when, *what in self.history]  # type: ignore[str-bytes-safe]
        return "\n".join([f"seed {self.seed}: {self.setting}", *lines])


def _short(part: object) -> str:
    if not isinstance(part, Event):
        return str(part)
    fields = ("group_id", "admission_number", "sample_index", "digest", "reason", "admitted", "unscorable", "reward")
    shown = [f"{name}={str(getattr(part, name))[:8]}" for name in fields if getattr(part, name, None) is not None]
    if hasattr(part, "context"):
        context = part.context  # type: ignore[attr-defined]
        shown.append(f"of={context.group_id[:8]}/{context.sample_index}/{context.digest[:8]}")
    if hasattr(part, "ended_low"):
        shown.append(f"ended<{part.ended_low}+{part.ended_above} v{part.incarnation}.{part.version}")  # type: ignore[attr-defined]
    return f"{type(part).__name__}({', '.join(shown)})"


def simulate(seed: int) -> tuple[World, Violation | None]:
    """Run one seed to its end."""
    world = World(seed)
    try:
        world.run()
    except (Violation, AssertionError) as error:
        return world, error if isinstance(error, Violation) else Violation(f"assertion: {error!r}")
    return world, None


__all__ = ["Move", "Outgoing", "Role", "Sequence", "Setting", "Violation", "World", "simulate"]
