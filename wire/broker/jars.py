"""Apache Kafka's jars: fetched once from Maven Central into the user's cache, and checked at every use.

Which jars, and what each holds, is `kafka.lock.toml` beside this file: a jar with another digest is never run.
`python -m wire.broker.jars` fetches them ahead of time, for an image or a machine that will be off the net.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
import tomllib
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from wire.errors import BrokerFailed

REPOSITORY_VARIABLE = "HEADWATER_MAVEN_REPOSITORY"
"""Another repository than Maven Central: an organisation's mirror."""
_LOCK_FILE = Path(__file__).with_name("kafka.lock.toml")
_TIMEOUT_SECONDS = 60
_AT_ONCE = 4


class Lock(NamedTuple):
    """What is in a lock file."""

    kafka: str
    """Release of Apache Kafka."""
    jars: Mapping[str, str]
    """`group:artifact:version` → SHA-256 in hexadecimal."""


def read_lock(path: Path = _LOCK_FILE) -> Lock:
    """The locked jars."""
    content = tomllib.loads(path.read_text())
    return Lock(content["kafka"], content["jars"])


def user_cache() -> Path:
    """Where this user's programs keep what can be fetched again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater"


def jars(lock: Lock, cache: Path) -> Path:
    """The directory below `cache` that holds the locked jars, fetched if they are not there yet. Blocks.

    Raises BrokerFailed when they cannot be had, or when one is not the one that is locked.
    """
    # named for its content too: two releases of ours never share a directory
    digest = hashlib.sha256(repr(sorted(lock.jars.items())).encode()).hexdigest()
    directory = cache / f"kafka-{lock.kafka}-{digest[:8]}"
    if not directory.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(cache / f"{directory.name}.lock"):
            if not directory.exists():  # another process has just fetched them
                _fetch(lock, directory)
    for coordinate, expected in lock.jars.items():
        _check(directory / _file_name(coordinate), expected, f"delete {directory}, and they are fetched anew")
    return directory


def _fetch(lock: Lock, directory: Path) -> None:
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f"{directory.name}-") as temporary:
        got = Path(temporary) / "jars"
        got.mkdir()

        def one(coordinate: str) -> None:
            jar = _download(coordinate, Path(temporary) / "repository", directory)
            _check(jar, lock.jars[coordinate], "the repository does not serve what is locked: it is not used")
            shutil.move(jar, got / _file_name(coordinate))

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(one, lock.jars))
        got.rename(directory)  # whole, or not there


def _download(coordinate: str, repository_cache: Path, directory: Path) -> Path:
    try:
        import requests
        from jgo.maven import MavenContext
    except ImportError as error:
        raise BrokerFailed(
            "what fetches Apache Kafka is not installed: `pip install 'headwater[broker]'` (the wheel jgo), "
            "or give --bootstrap HOST:PORT of a Kafka broker"
        ) from error
    repository = os.environ.get(REPOSITORY_VARIABLE)
    context = MavenContext(
        repo_cache=repository_cache,
        remote_repos={"given": repository.rstrip("/")} if repository else None,
        timeout=_TIMEOUT_SECONDS,
    )
    group, artifact, version = coordinate.split(":")
    try:
        return context.project(group, artifact).at_version(version).artifact().resolve()
    # jgo raises a RuntimeError for every answer that is not 200
    except (requests.RequestException, RuntimeError) as error:
        raise BrokerFailed(
            f"Apache Kafka cannot be fetched: {error}\n"
            f"Behind a proxy, set HTTPS_PROXY; with a mirror of Maven Central, set {REPOSITORY_VARIABLE} to its URL; "
            f"without a network, copy {directory} from a machine where `python -m wire.broker.jars` has been run; or "
            "give --bootstrap HOST:PORT of a Kafka broker"
        ) from error


def _check(jar: Path, expected: str, fix: str) -> None:
    try:
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
    except FileNotFoundError as error:
        raise BrokerFailed(f"{jar} is missing: {fix}") from error
    if found != expected:
        raise BrokerFailed(f"{jar} has the SHA-256 digest {found}, not {expected} as locked: {fix}")


def _file_name(coordinate: str) -> str:
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """One process at a time; the kernel lets go however it ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    print(jars(read_lock(), user_cache()))
