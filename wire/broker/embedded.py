"""The broker that is started where none is given: Apache Kafka, one node or three, on the data directory it is given.

Its log outlives it: started again, by this process or another, it has what was acknowledged before. (With one node,
what the machine's memory had not yet written to disk is lost when the machine itself dies, and only then.)
"""

import asyncio
import contextlib
import re
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Literal

from wire.broker.jars import jars, read_lock, user_cache
from wire.broker.java import find_java
from wire.broker.node import Node, prepare
from wire.broker.process import BrokerProcess, free_ports, is_free
from wire.errors import BrokerFailed


class EmbeddedKafka:
    """Children of this process: whatever ends this one ends them too."""

    def __init__(
        self,
        data: Path,
        *,
        nodes: Literal[1, 3] = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        retention_bytes: int | None = None,
        log_file: Path | None = None,
    ) -> None:
        """`port` 0: that of the last time if it is free, else any free one; from then on always the same.

        It takes two ports a node, from `port` on. `host` is an address of this machine that clients reach it by.
        `retention_bytes`: what a partition of a bulky topic (`wire.kafka.topics.BULKY`) keeps; None: all of it.
        `log_file` gets what it says; by default kafka.log in `data`, for three nodes in `data`/1, 2 and 3.
        """
        self._data = data.absolute()
        self._count = nodes
        self._host = host
        self._port = port
        self._retention_bytes = retention_bytes
        self._log_file = log_file
        self._nodes: tuple[Node, ...] = ()
        self._processes: dict[Node, BrokerProcess] = {}

    async def start(self) -> str:
        """Start every node that is not running and wait until each answers; returns `host:port`, with commas between.

        Raises BrokerFailed with the fix when Java or Kafka cannot be had, a port is taken, or one does not come up.
        """
        self._plan()
        starting = [node for node in self._nodes if node not in self._processes or not self._processes[node].alive]
        commands = await asyncio.to_thread(lambda: [self._command(node) for node in starting])
        for node in starting:
            self._processes[node] = BrokerProcess(self._log_file or node.data / "kafka.log")
        try:
            # together: none is ready before most are there
            async with asyncio.TaskGroup() as group:
                for node, command in zip(starting, commands, strict=True):
                    group.create_task(self._processes[node].launch(command, node))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors.exceptions[0].__cause__
        return ",".join(node.address for node in self._nodes)

    async def stop(self) -> None:
        """End it. Does nothing when it is not running."""
        await asyncio.gather(*(process.stop() for process in self._processes.values()))

    async def wait(self) -> int:
        """Wait until a node ends by itself; returns its exit status."""
        waits = [asyncio.create_task(process.wait()) for process in self._processes.values()]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for wait in waits:
                wait.cancel()

    @property
    def alive(self) -> bool:
        """Whether every node runs."""
        return bool(self._processes) and all(process.alive for process in self._processes.values())

    @property
    def log(self) -> Path:
        """What it says, or the directory below which its nodes' logs are."""
        return self._log_file or self._data

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def _plan(self) -> None:
        """Where each node is; the same for the life of this object."""
        if self._nodes:
            return
        if (self._data / ("1" if self._count == 1 else "log")).exists():
            raise BrokerFailed(f"{self._data} holds the log of a broker with more or fewer nodes")
        directories = [self._data] if self._count == 1 else [self._data / str(n + 1) for n in range(self._count)]
        port = self._port or _last_port(directories[0]) or free_ports(2 * self._count)
        self._nodes = tuple(
            Node(number + 1, self._host, port + 2 * number, port + 2 * number + 1, directory)
            for number, directory in enumerate(directories)
        )

    def _command(self, node: Node) -> list[str]:
        java, kafka = find_java(), jars(read_lock(), user_cache())
        return prepare(node, self._nodes, _cluster_id(self._data), self._retention_bytes, java, kafka)


def _cluster_id(data: Path) -> str:
    """Of all nodes on this directory: 22 characters of base64, made once."""
    path = data / "cluster_id"
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        made = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        path.write_text(f"h{made[1:]}")  # a dash at the beginning would be read as an option
    return path.read_text()


def _last_port(data: Path) -> int:
    """The port that the node of this directory had when it was last started; 0 when it is new, or the port taken."""
    with contextlib.suppress(FileNotFoundError):
        found = re.search(r"^listeners=PLAINTEXT://.*?:(\d+)", (data / "server.properties").read_text(), re.MULTILINE)
        if found and is_free(int(found[1])):
            return int(found[1])
    return 0
