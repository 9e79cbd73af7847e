"""The embedded broker: ready when it says so, durable, and gone with its parent."""

import asyncio
import os
import secrets
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from schemas import Rollout
from tests.integration.wire.hops import rollouts
from wire.broker.embedded import EmbeddedKafka
from wire.broker.process import free_ports, is_free
from wire.errors import BrokerFailed, BrokerUnreachable
from wire.kafka.disk import read_bound, read_disk
from wire.kafka.log_reader import LogReader
from wire.kafka.publisher import Publisher
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import apply_topics, existing_topics, read_log_id

PARENT = """
import asyncio, sys
from pathlib import Path
from wire.broker.embedded import EmbeddedKafka
async def main():
    broker = EmbeddedKafka(Path(sys.argv[1]))
    print(await broker.start(), broker.pids[0], flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_its_log_outlives_it(tmp_path: Path) -> None:
    """Killed under its clients it goes on where it was; stopped, another object goes on with the same log."""
    data = tmp_path / "a, b é日本+%41#&=@:;[x]"  # a directory may have any name
    broker = EmbeddedKafka(data)
    settings = KafkaSettings(bootstrap=await broker.start())
    assert await existing_topics(settings) == {}
    log_id = await apply_topics(settings, partitions=1)
    async with Publisher(settings, "rollout") as publisher:
        await publisher.send_all(rollouts(20))

        os.kill(broker.pids[0], signal.SIGKILL)
        assert await broker.wait() == -signal.SIGKILL
        assert not broker.alive
        assert await broker.start() == settings.bootstrap

        await publisher.send_all(rollouts(5))
    await broker.stop()
    with pytest.raises(BrokerUnreachable):
        await existing_topics(settings)

    assert (data / "log" / "meta.properties").exists()
    later = EmbeddedKafka(data)
    settings = KafkaSettings(bootstrap=await later.start())
    try:
        assert await read_log_id(settings) == log_id
        async with LogReader(settings) as reader:
            keys = [record.key for record in await reader.read_all("rollouts")]
        assert keys == [out.key for out in (*rollouts(20), *rollouts(5))]
        with pytest.raises(BrokerFailed, match=r"A Kafka instance in another process .* is using this directory"):
            await EmbeddedKafka(data, log_file=tmp_path / "second.log").start()
    finally:
        await later.stop()


async def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    port = free_ports(1)
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port):
        with pytest.raises(BrokerFailed, match=f"port {port} .* is in use"):
            await EmbeddedKafka(tmp_path, port=port).start()


async def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(tmp_path)), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert parent.stdout is not None
    bootstrap, pid = (await parent.stdout.readline()).decode().split()
    os.kill(parent.pid, signal.SIGKILL)
    await parent.wait()
    async with asyncio.timeout(10):
        while _lives(int(pid)) or not is_free(int(bootstrap.rsplit(":", 1)[1])):  # noqa: ASYNC110 - no child of ours
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_what_is_beyond_its_bound_leaves_the_disk(tmp_path: Path) -> None:
    """Whole segments of answers go, oldest first; what is told as the bound is what the topics have."""
    retention_bytes = 20 << 20
    broker = EmbeddedKafka(tmp_path, retention_bytes=retention_bytes)
    settings = KafkaSettings(bootstrap=await broker.start())
    try:
        await apply_topics(settings, partitions=1)
        assert await read_bound(settings) == 4 * retention_bytes
        log = tmp_path / "log" / "headwater.rollouts-0"
        [large] = rollouts(1)
        assert isinstance(large.event, Rollout)
        async with Publisher(settings, "rollout") as publisher:
            for _ in range(12):
                event = msgspec.structs.replace(large.event, text=secrets.token_hex(5 << 20))
                await publisher.send(large._replace(event=event))
        full = _bytes_in(log)
        assert full > 3 * retention_bytes
        async with asyncio.timeout(150):
            # a segment, of 18 MiB here, goes when all beyond it is enough by itself; the newest never
            while _bytes_in(log) > retention_bytes + 2 * (18 << 20):  # noqa: ASYNC110 - the broker's directory
                await asyncio.sleep(0.5)
        disk = await read_disk(settings)
        assert disk is not None
        assert disk.used_bytes < full
        async with LogReader(settings) as reader:
            assert await reader.begin_offset("rollouts", 0) > 0
            assert (await reader.read_all("rollouts"))[-1].offset == 11
    finally:
        await broker.stop()


def _bytes_in(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log*"))


def test_ports_are_below_those_of_outgoing_connections() -> None:
    assert free_ports(6) + 5 < 32768


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
