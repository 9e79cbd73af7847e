"""A broker node as a child process: it dies with its parent, and is ready when a client is answered."""

import asyncio
import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from wire.broker.node import ENVIRONMENT, Node
from wire.child import dies_with_parent
from wire.errors import BrokerFailed, BrokerUnreachable
from wire.kafka.clients import connect, make_admin
from wire.kafka.settings import KafkaSettings

PORTS = range(20000, 32000)
"""Below the kernel's range for outgoing connections (32768 up), whose sockets would take a port from us."""
START_SECONDS = 60
STOP_SECONDS = 20
_EXCEPTION = re.compile(r"^[\w.$]+(?:Exception|Error): (.+)", re.MULTILINE)


class BrokerProcess:
    """One node's process, child of this one: whatever kills the parent kills it too."""

    def __init__(self, log_file: Path) -> None:
        self._log_file = log_file
        self._log_start = 0
        """Where in the log file its present life begins."""
        self._process: asyncio.subprocess.Process | None = None

    async def launch(self, command: Sequence[str], node: Node) -> None:
        """Start it and wait until it answers. Raises BrokerFailed when it does not."""
        if not is_free(node.port, node.host):
            where = f"port {node.port} of {node.host}"
            raise BrokerFailed(f"{where} is in use: choose another, or leave it out to take a free one")
        with self._log_file.open("ab") as output:
            self._log_start = output.tell()
            self._process = await _spawn(command, output, node.data)
        try:
            await self._wait_until_ready(node.address)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End it. Does nothing when it is not running."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def wait(self) -> int:
        """Wait until it ends by itself; returns its exit status."""
        assert self._process is not None, "not started"
        return await self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def _wait_until_ready(self, bootstrap: str) -> None:
        assert self._process is not None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + START_SECONDS
        while loop.time() < deadline:
            if self._process.returncode is not None:
                raise BrokerFailed(f"Apache Kafka ended with status {self._process.returncode} at start{self._why()}")
            if await _answers(bootstrap):
                return
            await asyncio.sleep(0.05)
        raise BrokerFailed(f"Apache Kafka did not answer within {START_SECONDS} s at {bootstrap}{self._why()}")

    def _why(self) -> str:
        """The last exception that it named, and where to read on."""
        said = self._log_file.read_bytes()[self._log_start :].decode(errors="replace")
        named = _EXCEPTION.findall(said)
        return f"{': ' + named[-1] if named else ''} (see {self._log_file})"


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on. Raises BrokerFailed when there are none."""
    start = PORTS.start + (os.getpid() * 7) % len(PORTS)  # two that look at once begin at different places
    for port in (*range(start, PORTS.stop), *range(PORTS.start, start)):
        if all(is_free(port + number) for number in range(count)):
            return port
    raise BrokerFailed(f"no {count} free ports in a row in {PORTS.start}-{PORTS.stop}")


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether that address of this host can be listened on now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


async def _answers(bootstrap: str) -> bool:
    host, port = bootstrap.rsplit(":", 1)
    with socket.socket() as probe:  # first without a client, which would log each failure
        probe.settimeout(1)
        if probe.connect_ex((host, int(port))) != 0:
            return False
    settings = KafkaSettings(bootstrap=bootstrap)
    admin = make_admin(settings)
    try:
        await connect(admin, settings)
    except BrokerUnreachable:
        return False
    await admin.close()
    return True


async def _spawn(command: Sequence[str], output: IO[bytes], directory: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=directory,
        env=os.environ | ENVIRONMENT,
        preexec_fn=dies_with_parent(),
        start_new_session=True,  # a Ctrl-C is the parent's to pass on, in its order
    )
