# ruff: noqa: ASYNC110 - other processes are watched from outside
"""`headwater broker`: start, status, stop; and three nodes, of which any one may die."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integration.headwater.conftest import all_gone, descendants, headwater, processes
from tests.integration.wire.hops import rollouts
from wire.broker.process import free_ports
from wire.kafka.clients import connect, make_admin
from wire.kafka.log_reader import LogReader
from wire.kafka.publisher import Publisher
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import apply_topics, read_log_id


async def test_it_starts_tells_and_stops(tmp_path: Path) -> None:
    async with _started(tmp_path) as process:
        bootstrap = await _answers(process)
        found = json.loads(await _headwater("status", tmp_path, "--json"))
        assert (found["process"], found["bootstrap"]) == (process.pid, bootstrap)
        log_id = await apply_topics(KafkaSettings(bootstrap=bootstrap), partitions=1)
        shown = await asyncio.to_thread(headwater, "status", "--bootstrap", bootstrap)
        told = r"disk: log 0\.00 GiB \(without a bound\), \d+\.\d\d GiB free \(admits down to 1\.00 GiB\)"
        assert re.search(told, shown.stdout), shown.stdout
        assert json.loads(await _headwater("status", tmp_path, "--json"))["disk_bytes"] > found["disk_bytes"]
        again = await asyncio.to_thread(headwater, "broker", "start", "--data", str(tmp_path))
        assert f"runs in {tmp_path} already (process {process.pid})" in again.stderr
        started = descendants(process.pid)
        await _headwater("stop", tmp_path)
        assert await process.wait() == 0
        assert await all_gone(started) == set()
    assert "does not run" in await _headwater("status", tmp_path)
    async with _started(tmp_path) as process:
        bootstrap = await _answers(process)
        assert await read_log_id(KafkaSettings(bootstrap=bootstrap)) == log_id


@pytest.mark.slow
async def test_any_of_three_nodes_may_die(tmp_path: Path) -> None:
    async with _started(tmp_path, "--nodes", "3") as process:
        bootstrap = await _answers(process)
        settings = KafkaSettings(bootstrap=bootstrap)
        await apply_topics(settings, partitions=3, replication=3)
        sent = 0
        async with Publisher(settings, "rollout") as publisher:
            for number in (1, 2, 3):
                await publisher.send_all(rollouts(20))
                os.kill(_node(tmp_path / str(number)), signal.SIGKILL)
                await publisher.send_all(rollouts(20))  # the other two have it
                sent += 40
                assert process.stdout is not None
                assert b"is started again on its log" in await process.stdout.readline()
                while not await _has_all_copies(settings):
                    await asyncio.sleep(0.2)
        async with LogReader(settings) as reader:
            assert len(await reader.read_all("rollouts")) == sent


async def _has_all_copies(settings: KafkaSettings) -> bool:
    """Whether three nodes hold every partition of `rollouts`, up to date."""
    admin = make_admin(settings)
    await connect(admin, settings)
    try:
        [topic] = await admin.describe_topics([settings.name("rollouts")])
        return all(len(partition["isr"]) == 3 for partition in topic["partitions"])
    finally:
        await admin.close()


@asynccontextmanager
async def _started(data: Path, *options: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "headwater",
            "broker",
            "start",
            "--data",
            str(data),
            "--port",
            str(free_ports(6)),
            *options,
        ),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def _answers(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    found = re.match(r"Apache Kafka answers at (\S+);", line)
    assert found, line
    return found[1]


async def _headwater(command: str, data: Path, *options: str) -> str:
    done = await asyncio.to_thread(headwater, "broker", command, "--data", str(data), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _node(data: Path) -> int:
    settings = f"{data}/server.properties".encode()
    return next((pid for pid, command in processes() if settings in command and b"kafka.Kafka" in command), 0)
