"""One node of Apache Kafka: its settings, the format of its data directory, and the command that runs it."""

import subprocess
import uuid
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path

from wire.errors import BrokerFailed

MAX_MESSAGE_BYTES = 17 << 20
"""Above every topic's own limit: 16 MiB and what is around a value."""
JVM = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")
"""For one machine: it answers soon and idles for nothing (285 MB resident, measured)."""
_LOGGING = Path(__file__).with_name("log4j2.yaml")


@dataclass(frozen=True, slots=True)
class Node:
    """Where a node listens and what it keeps; broker and controller in one process."""

    port: int
    controller_port: int
    data: Path
    """Its log (`log/`) and its settings, written anew at every start."""
    number: int = 1
    host: str = "127.0.0.1"


def properties(node: Node) -> dict[str, str]:
    """The node's settings by Kafka's own names."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.number),
        "controller.quorum.voters": f"{node.number}@{node.host}:{node.controller_port}",
        "listeners": f"PLAINTEXT://{node.host}:{node.port},CONTROLLER://{node.host}:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{node.host}:{node.port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(node.data / "log"),
        # the project declares its topics with every limit set
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(MAX_MESSAGE_BYTES),
        "replica.fetch.max.bytes": str(MAX_MESSAGE_BYTES),
        # one that was killed may come back only when its old session has ended
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # a group's first member does not wait for others
        "group.initial.rebalance.delay.ms": "0",
        # one node holds every copy; few partitions, for each costs files and time at a start
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "8",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # sparse files, one or two a segment, that only programs which copy directories see in full
        "log.index.size.max.bytes": str(2 << 20),
        # of the heap; the default takes half of it for a map of keys, and ours are few
        "log.cleaner.dedupe.buffer.size": str(32 << 20),
    }


def prepare(node: Node, java: str, jars: Path) -> list[str]:
    """Write the settings, format the data directory if it is new, and return the command. Blocks (1.5 s when new).

    Raises BrokerFailed when Kafka refuses the directory.
    """
    node.data.mkdir(parents=True, exist_ok=True)
    settings = node.data / "server.properties"
    settings.write_text("".join(f"{key}={value}\n" for key, value in properties(node).items()))
    run = [java, *JVM, f"-Dlog4j2.configurationFile={_LOGGING}", "-cp", f"{jars}/*"]
    if not (node.data / "log" / "meta.properties").exists():
        _format([*run, "kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", str(settings)], node.data)
    return [*run, "kafka.Kafka", str(settings)]


def _cluster_id() -> str:
    """22 characters of base64; one that begins with a dash would be read as an option."""
    while (identity := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return identity


def _format(command: list[str], data: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BrokerFailed(f"Apache Kafka cannot use {data} for its log:\n{done.stdout}{done.stderr}")
