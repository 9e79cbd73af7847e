"""Which weights the engine holds, and when."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from schemas import PolicyVersion, Snapshot, WeightUpdate
from streams.rollout.engines.base import Completion, Engine, EngineError, ModelRefused, SampleRequest
from streams.rollout.follower import PolicyFollower, VersionGone
from wire.errors import SnapshotMismatch


class Loads(Engine):
    """Only loads, and remembers what."""

    def __init__(self) -> None:
        self.loads: list[PolicyVersion] = []
        self.broken = False
        self.strange: set[PolicyVersion] = set()
        """Versions of another model."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    @property
    def version(self) -> PolicyVersion:
        return self.loads[-1]

    @property
    def max_context_tokens(self) -> int:
        return 1

    def render(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return []

    def sample(self, request: SampleRequest) -> AsyncIterator[Completion]:
        raise NotImplementedError

    async def cancel(self, group_id: str) -> None: ...

    async def load(self, directory: Path, incarnation: int, version: int) -> None:
        await asyncio.sleep(0)
        if self.broken:
            raise EngineError("the engine is dead")
        if (incarnation, version) in self.strange:
            raise ValueError("x.weight is (2, 3); the model's is (4, 3)")
        self.loads.append(PolicyVersion(incarnation, version))


class Bench:
    """A follower over a store in which some versions are broken."""

    def __init__(self) -> None:
        self.engine = Loads()
        self.broken: set[PolicyVersion] = set()
        self.announced: list[PolicyVersion] = []
        self.failures: list[PolicyVersion] = []
        self.follower = PolicyFollower(
            self.engine,
            self._fetch,
            on_loaded=lambda update: self.announced.append(PolicyVersion(update.incarnation, update.version)),
            on_failure=lambda update: self.failures.append(PolicyVersion(update.incarnation, update.version)),
        )

    async def _fetch(self, update: WeightUpdate) -> Path:
        await asyncio.sleep(0)
        if PolicyVersion(update.incarnation, update.version) in self.broken:
            raise SnapshotMismatch("wrong digest")
        return Path("/nowhere")

    def offer(self, incarnation: int, version: int) -> None:
        snapshot = Snapshot(uri="memory://", version=version, files=(), digest="")
        self.follower.offer(
            WeightUpdate(model="m", incarnation=incarnation, version=version, snapshot=snapshot, published_at=0.0)
        )


@asynccontextmanager
async def running() -> AsyncGenerator[Bench]:
    bench = Bench()
    task = asyncio.create_task(bench.follower.run())
    try:
        yield bench
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_nothing_is_ready_before_the_first_version() -> None:
    async with running() as bench:
        first = asyncio.create_task(bench.follower.at_least(None))
        await settle()
        assert not first.done()
        bench.offer(1, 0)
        await first
        assert bench.announced == [(1, 0)]


async def test_goes_straight_to_the_newest_and_ignores_lower_incarnations() -> None:
    async with running() as bench:
        bench.offer(2, 3)
        bench.offer(1, 9)
        bench.offer(2, 4)
        await settle()
        assert bench.announced == [(2, 4)]
        bench.offer(1, 10)
        await settle()
        assert bench.announced == [(2, 4)]


async def test_a_held_version_stays_until_the_group_ends() -> None:
    async with running() as bench:
        bench.offer(1, 0)
        async with bench.follower.hold(PolicyVersion(1, 0)):
            bench.offer(1, 1)
            await settle()
            assert bench.engine.version == (1, 0)
        await settle()
        assert bench.engine.version == (1, 1)


async def test_an_older_version_is_loaded_again_for_an_evaluation_group() -> None:
    async with running() as bench:
        bench.offer(1, 0)
        await settle()
        bench.offer(1, 1)
        await settle()
        async with bench.follower.hold(PolicyVersion(1, 0)):
            assert bench.engine.version == (1, 0)
        await settle()
        assert bench.engine.loads == [(1, 0), (1, 1), (1, 0), (1, 1)]


async def test_waits_for_a_version_that_has_not_come() -> None:
    async with running() as bench:
        bench.offer(1, 0)
        waiting = asyncio.create_task(enter(bench, PolicyVersion(1, 1)))
        await settle()
        assert not waiting.done()
        assert bench.engine.version == (1, 0)  # train groups are sampled meanwhile
        bench.offer(1, 1)
        await waiting


async def test_two_evaluations_of_different_versions_take_turns() -> None:
    async with running() as bench:
        bench.offer(1, 0)
        await settle()
        bench.offer(1, 1)
        await settle()
        async with bench.follower.hold(PolicyVersion(1, 0)):
            other = asyncio.create_task(enter(bench, PolicyVersion(1, 1)))
            await settle()
            assert not other.done()
        await other


async def test_a_version_that_was_never_announced_and_is_passed_is_gone() -> None:
    async with running() as bench:
        bench.offer(1, 3)
        await settle()
        with pytest.raises(VersionGone, match=r"1\.2 was never announced"):
            async with bench.follower.hold(PolicyVersion(1, 2)):
                pass


async def test_wrong_bytes_keep_the_old_version_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.rollout.follower.FIRST_RETRY_SECONDS", 0.001)
    async with running() as bench:
        bench.offer(1, 0)
        await settle()
        bench.broken.add(PolicyVersion(1, 1))
        bench.offer(1, 1)
        await settle()
        assert bench.engine.version == (1, 0)
        assert bench.failures[0] == (1, 1)
        bench.broken.clear()
        async with asyncio.timeout(5), bench.follower.hold(PolicyVersion(1, 1)):
            assert bench.engine.version == (1, 1)


async def test_a_worker_with_no_version_falls_back_to_the_one_before() -> None:
    async with running() as bench:
        bench.broken.add(PolicyVersion(1, 2))
        for version in range(3):
            bench.offer(1, version)
        await settle()
        assert bench.announced == [(1, 1)]


async def test_a_snapshot_that_cannot_be_had_ends_the_groups_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.rollout.follower.FIRST_RETRY_SECONDS", 0.001)
    async with running() as bench:
        bench.broken.add(PolicyVersion(1, 0))
        bench.offer(1, 0)
        bench.offer(1, 1)
        await settle()
        with pytest.raises(VersionGone, match="cannot be had"):
            async with bench.follower.hold(PolicyVersion(1, 0)):
                pass
        assert bench.engine.version == (1, 1)


async def test_a_cancelled_wait_or_hold_lets_go() -> None:
    async with running() as bench:
        bench.offer(1, 0)
        await settle()
        waiting = asyncio.create_task(enter(bench, PolicyVersion(1, 7)))
        holding = asyncio.create_task(enter(bench, PolicyVersion(1, 0), asyncio.Event()))
        await settle()
        for task in (waiting, holding):
            task.cancel()
        await asyncio.gather(waiting, holding, return_exceptions=True)
        bench.offer(1, 1)
        await settle()
        assert bench.engine.version == (1, 1)


async def test_an_engine_that_fails_ends_the_follower() -> None:
    bench = Bench()
    bench.engine.broken = True
    bench.offer(1, 0)
    with pytest.raises(EngineError):
        await bench.follower.run()


@pytest.mark.parametrize("good_before", [False, True])
async def test_weights_of_another_model_end_the_follower_at_once(good_before: bool) -> None:
    bench = Bench()
    bench.engine.strange = {PolicyVersion(1, 1)}
    running = asyncio.create_task(bench.follower.run())
    if good_before:
        bench.offer(1, 0)
        await settle()
    bench.offer(1, 1)
    with pytest.raises(ModelRefused, match=r"weights 1\.1 .*x\.weight"):
        await asyncio.wait_for(running, 5)
    assert bench.failures == [(1, 1)]
    assert bench.announced == ([(1, 0)] if good_before else [])


async def enter(bench: Bench, version: PolicyVersion, until: asyncio.Event | None = None) -> None:
    async with bench.follower.hold(version):
        if until is not None:
            await until.wait()


async def test_a_train_group_waits_for_the_version_that_was_the_newest_at_its_admission() -> None:
    async with running() as bench:
        bench.offer(1, 1)
        await bench.follower.at_least(None)
        waits = asyncio.create_task(bench.follower.at_least(PolicyVersion(1, 2)))
        await settle()
        assert not waits.done()
        bench.offer(1, 3)
        await waits
        assert bench.follower.loaded == PolicyVersion(1, 3)


async def test_a_version_that_cannot_be_had_is_not_waited_for() -> None:
    async with running() as bench:
        bench.offer(1, 1)
        await bench.follower.at_least(None)
        bench.broken.add(PolicyVersion(1, 2))
        bench.offer(1, 2)
        await bench.follower.at_least(PolicyVersion(1, 2))
        assert bench.follower.loaded == PolicyVersion(1, 1)
