"""The broker that is started where none is given: Apache Kafka, one node, on the data directory that it is given.

Its log outlives it: started again, by this process or another, it has what was acknowledged before. (What the
machine's memory had not yet written to disk is lost when the machine itself dies, and only then.)
"""

import asyncio
from pathlib import Path

from wire.broker.jars import jars, read_lock, user_cache
from wire.broker.java import find_java
from wire.broker.node import Node, prepare
from wire.broker.process import BrokerProcess, free_port


class EmbeddedKafka(BrokerProcess):
    """A child of this process: whatever ends this one ends it too."""

    def __init__(self, data: Path, *, port: int = 0, log_file: Path | None = None) -> None:
        """`port` 0: any free one, the same at every start of this object. `log_file`: default kafka.log in `data`."""
        data.mkdir(parents=True, exist_ok=True)
        super().__init__("Apache Kafka", log_file or data / "kafka.log", start_seconds=60, stop_seconds=20)
        self._data = data.absolute()
        self._port = port

    async def start(self) -> str:
        """Start, also again after it died, and wait until it answers; returns `host:port`.

        Raises BrokerFailed with the fix when Java or Kafka cannot be had, the port is taken, or it does not come up.
        """
        self._port = self._port or free_port()
        return await self.launch(await asyncio.to_thread(self._command), self._port)

    def _command(self) -> list[str]:
        directory = jars(read_lock(), user_cache())
        node = Node(self._port, free_port(other_than=self._port), self._data)
        return prepare(node, find_java(), directory)
