"""`kill -9` of a worker with several events in flight loses nothing (invariant 1)."""

import asyncio
import dataclasses
import os
import signal
import sys
from pathlib import Path

from tests.integration.wire.hops import SHELLS, count, read_rewards, rollouts, until
from wire.lag import group_lag
from wire.publisher import Publisher
from wire.settings import KafkaSettings
from wire.topics import apply_topics

EVENTS = 240
KILL_AT = 60


async def test_a_killed_worker_loses_nothing(new_kafka: KafkaSettings, tmp_path: Path) -> None:
    # both shells at once: the bundled broker takes 8 seconds to form a consumer group
    async with asyncio.TaskGroup() as group:
        for shell in SHELLS:
            group.create_task(_kill_and_count(shell, new_kafka, tmp_path / shell))


async def _kill_and_count(shell: str, base: KafkaSettings, state: Path) -> None:
    kafka = dataclasses.replace(base, prefix=f"{base.prefix}{shell}.")
    await apply_topics(kafka, partitions=4)
    async with Publisher(kafka, "rollout") as publisher:
        await publisher.send_all(rollouts(EVENTS))

    async def some() -> bool:
        return await count(kafka, "rewards") >= KILL_AT

    async def every() -> bool:
        return await count(kafka, "rewards") >= EVENTS and len(await _groups(kafka)) == EVENTS

    worker = await _start(shell, kafka, state)
    await until(some)
    os.kill(worker.pid, signal.SIGKILL)
    await worker.wait()
    done = len(await _groups(kafka))
    assert KILL_AT <= done < EVENTS, "it was to be killed in mid-flight"
    [behind] = await group_lag(kafka, "dispatch", ["rollouts"])
    assert behind.committed <= done

    worker = await _start(shell, kafka, state)
    try:
        await until(every)
    finally:
        os.kill(worker.pid, signal.SIGKILL)
        await worker.wait()


async def _start(shell: str, kafka: KafkaSettings, state: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.wire.worker", shell, str(state)),
        env=os.environ | kafka.to_environment(),
        cwd=Path(__file__).parents[3],
    )


async def _groups(kafka: KafkaSettings) -> set[str]:
    return {reward.context.group_id for reward in await read_rewards(kafka)}
