"""Writes wire/broker/kafka.lock.toml: `python deploy/kafka/lock.py 4.4.0`, to go to another release of Apache Kafka.

Resolved from Maven Central by jgo; every jar is fetched once, and its digest is what is trusted from then on.
"""

import hashlib
import sys
from pathlib import Path

import jgo
from jgo.maven import MavenContext

LOCK = Path(__file__).resolve().parents[2] / "wire" / "broker" / "kafka.lock.toml"
LOGGER = "log4j-slf4j-impl"
"""Kafka's log4j behind the interface that it logs to: without it the broker says nothing, not even why it died."""
LOGGING = "log4j-api"
"""The logger's version is this one's."""


def main(kafka: str) -> None:
    resolved = jgo.build(f"org.apache.kafka:kafka_2.13:{kafka}").lockfile
    assert resolved is not None
    digests = {f"{jar.groupId}:{jar.artifactId}:{jar.version}": jar.sha256 for jar in resolved.dependencies}
    version = next(jar.version for jar in resolved.dependencies if jar.artifactId == LOGGING)
    logger = MavenContext().project("org.apache.logging.log4j", LOGGER).at_version(version).artifact().resolve()
    digests[f"org.apache.logging.log4j:{LOGGER}:{version}"] = hashlib.sha256(logger.read_bytes()).hexdigest()
    lines = [f'"{coordinate}" = "{digest}"' for coordinate, digest in sorted(digests.items())]
    LOCK.write_text(
        "# Apache Kafka's jars and their SHA-256 digests, written by deploy/kafka/lock.py\n"
        f'kafka = "{kafka}"\n\n[jars]\n' + "\n".join(lines) + "\n"
    )
    print(f"{LOCK}: {len(lines)} jars")


if __name__ == "__main__":
    main(sys.argv[1])
