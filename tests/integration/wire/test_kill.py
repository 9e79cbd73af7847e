"""`kill -9` of a worker with several events in flight loses nothing (invariant 1)."""

import asyncio
import dataclasses
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.conftest import PARTITIONS
from tests.integration.wire.hops import SHELLS, count, read_rewards, rollout, rollouts, until
from wire.hop.shell import COMMIT_SECONDS
from wire.kafka.lag import group_lag
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import apply_topics

EVENTS = 240
KILL_AT = 60


async def test_a_killed_worker_loses_nothing(new_kafka: KafkaSettings, tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as group:
        for shell in SHELLS:
            group.create_task(_kill_and_count(shell, new_kafka, tmp_path / shell))


async def _kill_and_count(shell: str, base: KafkaSettings, state: Path) -> None:
    kafka = dataclasses.replace(base, prefix=f"{base.prefix}{shell}.")
    await apply_topics(kafka, partitions=PARTITIONS)
    # the first event of each partition is still in flight at the kill, with later ones done and a commit due
    stragglers = [
        Outgoing("rollouts", f"s{number}", rollout(f"s{number}", text="straggles"), partition=number)
        for number in range(PARTITIONS)
    ]
    events = [*stragglers, *rollouts(EVENTS)]
    async with Publisher(kafka, "rollout") as publisher:
        await publisher.send_all(events)

    async def some() -> bool:
        return await count(kafka, "rewards") >= KILL_AT

    async def every() -> bool:
        return await count(kafka, "rewards") >= len(events) and len(await _groups(kafka)) == len(events)

    async with _worker(shell, kafka, state, straggler_seconds=60):
        await until(some)
        await asyncio.sleep(1.5 * COMMIT_SECONDS)
    assert not {out.key for out in stragglers} & await _groups(kafka), "they were to be in flight"
    [behind] = await group_lag(kafka, "dispatch", ["rollouts"])
    assert behind.committed == 0

    async with _worker(shell, kafka, state, straggler_seconds=0):
        await until(every)


@asynccontextmanager
async def _worker(shell: str, kafka: KafkaSettings, state: Path, straggler_seconds: float) -> AsyncGenerator[None]:
    """The hop in a process of its own, killed with -9 at the end of the block."""
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.wire.worker", shell, str(state), str(straggler_seconds)),
        env=os.environ | kafka.to_environment(),
        cwd=Path(__file__).parents[3],
    )
    try:
        yield
    finally:
        worker.send_signal(signal.SIGKILL)
        await worker.wait()


async def _groups(kafka: KafkaSettings) -> set[str]:
    return {reward.context.group_id for reward in await read_rewards(kafka)}
