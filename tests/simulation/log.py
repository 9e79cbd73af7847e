"""The log of the simulation: partitions, offsets and committed offsets, in memory, events as they are."""

from collections import defaultdict
from collections.abc import Sequence
from zlib import crc32

from schemas import Event
from schemas.topics import topic_spec
from wire.kafka.records import Outgoing, Record


class Log:
    """One broker's life. Dies with it."""

    def __init__(self, log_id: str, partitions: int) -> None:
        self.log_id = log_id
        self.partitions = partitions
        self.committed: dict[tuple[str, str, int], int] = defaultdict(int)
        """(consumer group, topic, partition) -> offset to read on from."""
        self._records: dict[tuple[str, int], list[Event]] = defaultdict(list)

    def count(self, topic: str) -> int:
        """Partitions of a topic."""
        return self.partitions if topic_spec(topic).grouped else 1

    def partition_of(self, key: str, topic: str = "generations") -> int:
        return crc32(key.encode()) % self.count(topic)

    def append(self, out: Outgoing) -> tuple[int, int]:
        """(partition, offset)."""
        partition = self.partition_of(out.key, out.topic) if out.partition is None else out.partition
        events = self._records[out.topic, partition]
        events.append(out.event)
        return partition, len(events) - 1

    def events(self, topic: str, partition: int = 0) -> Sequence[Event]:
        return self._records[topic, partition]

    def all(self, topic: str) -> list[tuple[int, int, Event]]:
        """(partition, offset, event) of every record."""
        return [
            (partition, offset, event)
            for partition in range(self.count(topic))
            for offset, event in enumerate(self._records[topic, partition])
        ]

    def end(self, topic: str, partition: int) -> int:
        return len(self._records[topic, partition])


def record(topic: str, partition: int, offset: int) -> Record:
    return Record(topic, partition, offset, None, b"", {}, 0)
