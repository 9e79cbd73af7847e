"""One node of Apache Kafka: its settings, the format of its data directory, and the command that runs it."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wire.errors import BrokerFailed

MAX_MESSAGE_BYTES = 17 << 20
"""Above every topic's own limit: 16 MiB and what is around a value."""
JVM = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")
"""For one machine: it answers soon, idles for nothing, and takes some 185 MB (measured)."""
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
"""Else Java reads names of directories as ASCII."""
_LOGGING = Path(__file__).with_name("log4j2.yaml")


@dataclass(frozen=True, slots=True)
class Node:
    """Broker and controller in one process: where it listens, and what it keeps."""

    number: int
    host: str
    port: int
    controller_port: int
    data: Path
    """Its log (`log/`) and its settings, written anew at every start."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def settings(self) -> Path:
        return self.data / "server.properties"


def properties(node: Node, cluster: Sequence[Node], retention_bytes: int | None) -> dict[str, str]:
    """The node's settings by Kafka's own names. `cluster` is all nodes, this one among them.

    `retention_bytes` is a partition's, of topics that set none of their own; None: there is no bound.
    """
    # what is deleted is whole segments, and the newest never: a quarter is the most that it may go beyond
    segment_bytes = min(64 << 20, max(MAX_MESSAGE_BYTES + (1 << 20), (retention_bytes or 1 << 30) // 4))
    copies, in_sync = (3, 2) if len(cluster) >= 3 else (1, 1)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.number),
        "controller.quorum.voters": ",".join(f"{peer.number}@{peer.host}:{peer.controller_port}" for peer in cluster),
        "listeners": f"PLAINTEXT://{node.address},CONTROLLER://{node.host}:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{node.address}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": "log",  # below the working directory: as a path of its own a comma would part it
        # the project declares its topics with every limit set
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(MAX_MESSAGE_BYTES),
        "replica.fetch.max.bytes": str(MAX_MESSAGE_BYTES),
        # one that was killed may come back only when its old session has ended
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # a consumer group's first member does not wait for others
        "group.initial.rebalance.delay.ms": "0",
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        # few partitions: each costs files, and time at a start
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.num.partitions": "8",
        "log.retention.bytes": str(-1 if retention_bytes is None else retention_bytes),
        "log.segment.bytes": str(segment_bytes),
        "log.retention.check.interval.ms": "30000",
        # soon enough for the disk, late enough for who is still reading
        "log.segment.delete.delay.ms": "5000",
        # sparse files, one or two a segment, that only programs which copy directories see in full
        "log.index.size.max.bytes": str(2 << 20),
        # of the heap; the default takes half of it for a map of keys, and ours are few
        "log.cleaner.dedupe.buffer.size": str(32 << 20),
    }


def prepare(
    node: Node, cluster: Sequence[Node], cluster_id: str, retention_bytes: int | None, java: str, jars: Path
) -> list[str]:
    """Write the settings, format the data directory if it is new, and return the command, to be run there.

    Blocks (1.5 s when new). Raises BrokerFailed when Kafka refuses the directory.
    """
    node.data.mkdir(parents=True, exist_ok=True)
    settings = properties(node, cluster, retention_bytes)
    node.settings.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    run = [java, *JVM, f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", "-cp", f"{jars}/*"]
    if not (node.data / "log" / "meta.properties").exists():
        _format([*run, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(node.settings)], node.data)
    return [*run, "kafka.Kafka", str(node.settings)]


def _format(command: list[str], data: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=data, env=os.environ | ENVIRONMENT)
    if done.returncode:
        raise BrokerFailed(f"Apache Kafka cannot use {data} for its log:\n{done.stdout}{done.stderr}")
