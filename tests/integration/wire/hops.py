"""Hops, and both shells to run them in, for the tests on a real broker."""

import asyncio
import contextlib
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition

from schemas import Context, Event, ExactGrader, Reward, Rollout, Task
from schemas.codec import decode
from schemas.topics import REWARDS, ROLLOUTS, TopicSpec
from wire.errors import Retryable
from wire.hop.consumer_hop import run_consumer_hop
from wire.hop.faust_hop import run_faust_hop
from wire.hop.hop import Hop
from wire.kafka.clients import connect, make_consumer
from wire.kafka.log_reader import LogReader
from wire.kafka.records import Outgoing, Record
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics

SHELLS = {"faust": run_faust_hop, "consumer": run_consumer_hop}
WAIT_SECONDS = 60


class Echo(Hop[Any]):
    """A reward for each rollout, after a while that differs from event to event."""

    name = "dispatch"
    topics: tuple[TopicSpec[Any], ...] = (ROLLOUTS,)
    concurrency = 8
    attempts = 2

    def __init__(self, longest_seconds: float = 0.0, straggler_seconds: float = 0.0) -> None:
        self._longest_seconds = longest_seconds
        self._straggler_seconds = straggler_seconds
        self.seen: list[tuple[int, int]] = []
        self.held: int | None = None
        self.owned: set[tuple[str, int]] = set()

    async def handle(self, event: Event, record: Record) -> Sequence[Outgoing]:
        assert isinstance(event, Rollout)
        self.seen.append((record.partition, record.offset))
        await asyncio.sleep(self._longest_seconds * (zlib.crc32(event.group_id.encode()) % 100) / 100)
        if event.text == "straggles":
            await asyncio.sleep(self._straggler_seconds)
        if event.text == "fails":
            raise Retryable("the jail is on fire")
        return [reward(event, "ok")]

    def exhausted(self, event: Event, record: Record, reason: str) -> Sequence[Outgoing]:
        assert isinstance(event, Rollout)
        return [reward(event, reason)]

    def assigned(self, starts: Mapping[tuple[str, int], int]) -> None:
        self.owned.update(starts)

    def revoked(self, partitions: Iterable[tuple[str, int]]) -> None:
        self.owned.difference_update(partitions)


class Holding(Echo):
    """Keeps its floor where `held` says."""

    concurrency = 1

    def floor(self, topic: str, partition: int) -> int | None:
        return self.held


def rollout(group: str, text: str = "42") -> Rollout:
    task = Task(prompt_id="p", domain="sums", grader=ExactGrader(answer="42"))
    return Rollout(rollout_id=f"{group}-0", group_id=group, task=task, text=text, digest="d")


def reward(event: Rollout, feedback: str) -> Outgoing:
    context = Context(group_id=event.group_id, sample_index=0, digest=event.digest, domain="sums", prompt_id="p")
    return Outgoing("rewards", event.group_id, Reward(context=context, reward=1.0, feedback=feedback))


def rollouts(count: int) -> list[Outgoing]:
    return [Outgoing("rollouts", f"g{number}", rollout(f"g{number}")) for number in range(count)]


async def run(
    shell: str, hop: Hop, settings: KafkaSettings, state: Path, stop: asyncio.Event, instance_id: str = "worker-0"
) -> None:
    """The hop in that shell until `stop`."""
    await SHELLS[shell](
        hop,
        settings,
        stop=stop,
        instance_id=instance_id,
        state_directory=state / shell / instance_id,
        metrics=Metrics(),
    )


async def run_to_its_end(shell: str, hop: Hop, settings: KafkaSettings, state: Path) -> None:
    """For a worker that must stop by itself."""
    async with asyncio.timeout(WAIT_SECONDS):
        await run(shell, hop, settings, state, asyncio.Event())


@contextlib.asynccontextmanager
async def running(
    shell: str,
    hop: Hop,
    settings: KafkaSettings,
    state: Path,
    instance_id: str = "worker-0",
    *,
    fails: type[Exception] | None = None,
) -> AsyncGenerator[asyncio.Task[None]]:
    """The hop at work; stopped at the end of the block, where what it raised comes out (unless it is what `fails`
    says: then the block waits for it)."""
    stop = asyncio.Event()
    task = asyncio.create_task(run(shell, hop, settings, state, stop, instance_id))
    try:
        yield task
    finally:
        if fails is None:
            stop.set()
            await task
        else:
            await asyncio.wait([task], timeout=WAIT_SECONDS)
            assert isinstance(task.exception(), fails)


async def until(condition: Callable[[], Awaitable[bool]], task: asyncio.Task[None] | None = None) -> None:
    """Wait until it holds; a worker that ends meanwhile ends the wait with its error."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not await condition():
            if task is not None and task.done():
                task.result()
            await asyncio.sleep(0.2)


async def read_rewards(settings: KafkaSettings) -> list[Reward]:
    found: list[Reward] = []
    for record in await read_topic(settings, "rewards"):
        event = decode(record.value, REWARDS)
        assert isinstance(event, Reward)
        found.append(event)
    return found


async def read_topic(settings: KafkaSettings, topic: str) -> list[Record]:
    async with LogReader(settings) as reader:
        return await reader.read_all(topic)


async def count(settings: KafkaSettings, topic: str) -> int:
    """Records on a topic; a transaction's marker counts too."""
    async with LogReader(settings) as reader:
        return sum([await reader.end_offset(topic, number) for number in range(await reader.partitions(topic))])


async def commit_as(settings: KafkaSettings, group: str, offsets: dict[tuple[str, int], int]) -> None:
    """Commit for a group that has no members, as an operator would."""
    consumer = make_consumer(settings, "test", consumer_group=group)
    await connect(consumer, settings)
    places = {TopicPartition(settings.name(topic), number): at for (topic, number), at in offsets.items()}
    consumer.assign(list(places))
    try:
        await consumer.commit(places)
    finally:
        await consumer.stop()
