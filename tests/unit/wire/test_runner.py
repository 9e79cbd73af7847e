"""Events in flight: what may be committed, in which order, and what a rebalance drops."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from schemas import Rollout
from tests.unit.wire.doubles import SETTINGS, MemoryPublisher, ToldHop, marks_in, record, rollout
from wire.errors import NoProgress, UpgradeFirst
from wire.hop.inflight import Journal
from wire.hop.runner import Lease, Runner
from wire.kafka.records import Outgoing
from wire.metrics import Metrics

ROLLOUTS = ("rollouts", 0)


class Gates:
    """Each event waits for its gate."""

    def __init__(self) -> None:
        self.open: dict[str, asyncio.Event] = {}
        self.waiting: list[str] = []

    async def __call__(self, event: Rollout) -> None:
        self.waiting.append(event.group_id)
        await self.open.setdefault(event.group_id, asyncio.Event()).wait()

    def let(self, group: str) -> None:
        self.open.setdefault(group, asyncio.Event()).set()


def make(hop: ToldHop, tmp_path: Path) -> tuple[Runner, Lease]:
    runner = Runner(hop, SETTINGS, MemoryPublisher(), Journal(tmp_path), Metrics())
    runner.assigned({ROLLOUTS: 0})
    lease = runner.lease(*ROLLOUTS)
    assert lease is not None
    return runner, lease


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_commit_stays_below_what_is_in_flight(tmp_path: Path) -> None:
    gates = Gates()
    runner, lease = make(ToldHop(gates, concurrency=4), tmp_path)
    for offset in range(4):
        await runner.deliver(lease, record(rollout(f"g{offset}"), offset))
    for done in (1, 2, 3):
        gates.let(f"g{done}")
    await settle()
    assert await runner.committable() == {}
    gates.let("g0")
    await settle()
    assert await runner.committable() == {ROLLOUTS: 4}
    runner.committed({ROLLOUTS: 4})
    assert await runner.committable() == {}


async def test_no_more_than_the_concurrency_is_in_flight(tmp_path: Path) -> None:
    gates = Gates()
    runner, lease = make(ToldHop(gates, concurrency=2), tmp_path)
    for offset in range(2):
        await runner.deliver(lease, record(rollout(f"g{offset}"), offset))
    third = asyncio.create_task(runner.deliver(lease, record(rollout("g2"), 2)))
    await settle()
    assert gates.waiting == ["g0", "g1"]
    gates.let("g0")
    await settle()
    assert gates.waiting == ["g0", "g1", "g2"]
    await third
    await runner.drain(0)


async def test_one_at_a_time_is_in_order_of_delivery(tmp_path: Path) -> None:
    hop = ToldHop()
    runner, lease = make(hop, tmp_path)
    for offset in range(50):
        await runner.deliver(lease, record(rollout("g"), offset))
    await runner.drain(5)
    assert hop.handled == list(range(50))


async def test_a_revoked_partition_drops_what_is_in_flight(tmp_path: Path) -> None:
    gates = Gates()
    hop = ToldHop(gates, concurrency=2)
    runner, lease = make(hop, tmp_path)
    await runner.deliver(lease, record(rollout("g0"), 0))
    await runner.revoked([ROLLOUTS])
    runner.assigned({ROLLOUTS: 0})
    new = runner.lease(*ROLLOUTS)
    assert new is not None
    # one fetched before the rebalance has the old lease: it changes nothing
    await runner.deliver(lease, record(rollout("g1"), 1))
    assert runner.in_flight == 0
    # the new owner (here the same) reads it again, and every slot is free
    gates.let("g0")
    gates.let("g1")
    for offset in range(2):
        await runner.deliver(new, record(rollout(f"g{offset}"), offset))
    await runner.drain(5)
    assert hop.handled == [0, 1]
    assert marks_in(tmp_path) == 0


async def test_an_event_cancelled_before_it_began_gives_its_slot_back(tmp_path: Path) -> None:
    hop = ToldHop()
    runner, lease = make(hop, tmp_path)
    await runner.deliver(lease, record(rollout("g"), 0))
    await runner.revoked([ROLLOUTS])  # its task has not had a step yet
    runner.assigned({ROLLOUTS: 0})
    new = runner.lease(*ROLLOUTS)
    assert new is not None
    async with asyncio.timeout(1):
        await runner.deliver(new, record(rollout("g"), 0))


async def test_what_stops_the_worker_is_not_committed(tmp_path: Path) -> None:
    runner, lease = make(ToldHop(concurrency=2), tmp_path)
    await runner.deliver(lease, record(rollout("g"), 0))
    await runner.deliver(lease, record(b'{"schema_version": 9}', 1, writer="rollout"))
    await asyncio.wait_for(runner.failed.wait(), 1)
    assert isinstance(runner.failure, UpgradeFirst)
    await settle()
    assert await runner.committable() == {ROLLOUTS: 1}
    await runner.deliver(lease, record(rollout("g"), 2))
    assert runner.in_flight == 0


async def test_the_floor_holds_the_commit_and_is_never_asked_within_an_event(tmp_path: Path) -> None:
    gates = Gates()

    class Holding(ToldHop):
        held: int | None = 0

        def floor(self, topic: str, partition: int) -> int | None:
            return self.held

    hop = Holding(gates)
    runner, lease = make(hop, tmp_path)
    gates.let("g0")
    await runner.deliver(lease, record(rollout("g0"), 0))
    await settle()
    assert await runner.committable() == {}  # done, and held at 0
    await runner.deliver(lease, record(rollout("g1"), 1))
    await settle()
    hop.held = None  # the event closed its group, and what follows from it is not published yet
    assert runner.committable_now() == {}
    asking = asyncio.create_task(runner.committable())
    await settle()
    assert not asking.done()
    gates.let("g1")
    assert await asking == {ROLLOUTS: 2}


async def test_a_floor_needs_concurrency_one(tmp_path: Path) -> None:
    class Holding(ToldHop):
        def floor(self, topic: str, partition: int) -> int | None:
            return None

    with pytest.raises(AssertionError, match="concurrency 1"):
        make(Holding(concurrency=2), tmp_path)


async def test_suspects_are_handled_alone(tmp_path: Path) -> None:
    for offset in (0, 1):
        Journal(tmp_path).begin(record(rollout(f"g{offset}"), offset))
    gates = Gates()
    runner, lease = make(ToldHop(gates, concurrency=3), tmp_path)
    await runner.deliver(lease, record(rollout("g0"), 0))
    others = asyncio.create_task(runner.deliver(lease, record(rollout("g1"), 1)))
    await settle()
    assert gates.waiting == ["g0"]
    gates.let("g0")
    await asyncio.wait_for(others, 1)
    await settle()
    assert gates.waiting == ["g0", "g1"]
    await runner.drain(0)


async def test_a_tick_publishes_and_a_broken_one_stops_the_worker(tmp_path: Path) -> None:
    class Ticking(ToldHop):
        ticks = 0

        async def tick(self, now: float) -> Sequence[Outgoing]:
            self.ticks += 1
            if self.ticks > 1:
                raise RuntimeError("inconsistent")
            return []

    runner, _ = make(Ticking(), tmp_path)
    await asyncio.wait_for(runner.tick_forever(), 5)
    assert isinstance(runner.failure, RuntimeError)


async def test_a_stuck_handler_is_no_progress(tmp_path: Path) -> None:
    hop = ToldHop(Gates())
    hop.stall_seconds = 0.0
    runner, lease = make(hop, tmp_path)
    runner.check_handlers()
    assert runner.failure is None  # nothing in flight: nothing is stuck
    await runner.deliver(lease, record(rollout("g"), 0))
    await asyncio.sleep(0.01)
    runner.check_handlers()
    assert isinstance(runner.failure, NoProgress)
    await runner.drain(0)
