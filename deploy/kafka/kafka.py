"""One node of Apache Kafka on this machine, from its jars: `python deploy/kafka/kafka.py start`.

Needs Java 17 or newer and (the first time) Maven. The jars go to build/kafka/libs; the log stays in
`--data` from one start to the next. The tests start the same node in a directory of their own.
"""

import argparse
import asyncio
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from wire.broker.process import BrokerProcess, free_port  # noqa: E402 - this file is run by its path
from wire.errors import BrokerFailed  # noqa: E402

CACHE = ROOT / "build" / "kafka"
JAVA_MINIMUM = 17
MAX_MESSAGE_BYTES = 17 * 1024 * 1024
"""Above every topic's own limit: 16 MiB and what is around a value."""


class KafkaBroker(BrokerProcess):
    """A broker and controller in one process; `data` holds its log and settings."""

    def __init__(self, data: Path, log_file: Path | None = None) -> None:
        super().__init__("Apache Kafka", log_file, start_seconds=60, stop_seconds=20)
        self._data = data

    async def start(self, port: int = 0) -> str:
        """Start and wait until it answers; returns `host:port`. Raises BrokerFailed with the fix."""
        java = _java()
        libs = await asyncio.to_thread(_libs)
        port = port or free_port()
        await asyncio.to_thread(self._format, java, libs, port)
        logging = f"-Dlog4j2.configurationFile={ROOT / 'wire' / 'broker' / 'log4j2.yaml'}"
        return await self.launch(
            [java, "-Xmx512m", logging, "-cp", f"{libs}/*", "kafka.Kafka", str(self._properties)], port
        )

    @property
    def _properties(self) -> Path:
        return self._data / "server.properties"

    def _format(self, java: str, libs: Path, port: int) -> None:
        self._data.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(_properties(port, free_port(other_than=port), self._data / "log"))
        if (self._data / "log" / "meta.properties").exists():
            return
        tool = [java, "-cp", f"{libs}/*", "kafka.tools.StorageTool"]
        cluster = _run([*tool, "random-uuid"]).strip()
        _run([*tool, "format", "-t", cluster, "-c", str(self._properties)])


def _properties(port: int, controller: int, log: Path) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(log),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "message.max.bytes": str(MAX_MESSAGE_BYTES),
        "replica.fetch.max.bytes": str(MAX_MESSAGE_BYTES),
        "num.partitions": "4",
        # one node holds every copy
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "8",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        raise BrokerFailed(
            f"Java is not installed: Apache Kafka needs {JAVA_MINIMUM} or newer (`apt install default-jre`)"
        )
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', version)
    if found is None or int(found.group(1)) < JAVA_MINIMUM:
        said = version.splitlines()[0] if version else "an unknown version"
        raise BrokerFailed(f"Apache Kafka needs Java {JAVA_MINIMUM} or newer, and {java} is {said}")
    return java


def _libs() -> Path:
    """The directory of jars; fetched when the pom is another than last time."""
    libs, stamp = CACHE / "libs", CACHE / "libs.pom"
    pom = (HERE / "pom.xml").read_text()
    if stamp.exists() and stamp.read_text() == pom:
        return libs
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerFailed("Maven is not installed: it brings Kafka's jars (`apt install maven`)")
    print(f"fetching Apache Kafka with Maven into {libs}", file=sys.stderr)
    shutil.rmtree(libs, ignore_errors=True)
    command = [maven, "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    _run([*command, f"-DoutputDirectory={libs}"])
    stamp.write_text(pom)
    return libs


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BrokerFailed(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}")
    return done.stdout


async def _serve(port: int, data: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    log_file = data / "kafka.log"
    broker = KafkaBroker(data, log_file)
    bootstrap = await broker.start(port)
    print(f"Apache Kafka answers at {bootstrap} (log: {log_file}); Ctrl-C ends it", flush=True)
    waits = [asyncio.create_task(stop.wait()), asyncio.create_task(broker.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    died = not broker.alive
    for wait in waits:
        wait.cancel()
    await broker.stop()
    if died:
        raise BrokerFailed(f"Apache Kafka ended by itself; see {log_file}")


def main() -> int:
    """Start a node and keep it until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start one node and keep it until Ctrl-C")
    start.add_argument("--port", type=int, default=9092, help="below 32768; 0: any free one (default: 9092)")
    start.add_argument(
        "--data", type=Path, default=CACHE / "data", help="where its log is kept (default: build/kafka/data)"
    )
    arguments = parser.parse_args()
    arguments.data.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(_serve(arguments.port, arguments.data))
    except BrokerFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
