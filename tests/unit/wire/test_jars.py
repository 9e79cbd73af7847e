"""Kafka's jars come from a repository of this test's own, served on loopback."""

import hashlib
import shutil
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from wire.broker.jars import REPOSITORY_VARIABLE, Lock, jars, read_lock
from wire.errors import BrokerFailed

BYTES = {"org.one:first:1.0": b"first jar", "org.two.deep:second_2.13:2.0-3": b"second jar" * 9000}
LOCK = Lock("4.0", {coordinate: hashlib.sha256(content).hexdigest() for coordinate, content in BYTES.items()})


class Repository:
    """A Maven repository on disk and over HTTP; `asked` has the paths of jars that were fetched."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: list[str] = []
        for coordinate, content in BYTES.items():
            self.path(coordinate).parent.mkdir(parents=True)
            self.path(coordinate).write_bytes(content)

    def path(self, coordinate: str) -> Path:
        group, artifact, version = coordinate.split(":")
        return self.root / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.jar"

    def handler(self) -> type[SimpleHTTPRequestHandler]:
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.endswith(".jar"):
                    asked.append(self.path)
                super().do_GET()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Repository]:
    made = Repository(tmp_path / "repository")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(made.handler(), directory=made.root)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv(REPOSITORY_VARIABLE, f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield made
        server.shutdown()


def test_they_are_fetched_once_and_then_used_without_a_network(repository: Repository, tmp_path: Path) -> None:
    directory = jars(LOCK, tmp_path / "cache")
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == {
        "first-1.0.jar": b"first jar",
        "second_2.13-2.0-3.jar": b"second jar" * 9000,
    }
    shutil.rmtree(repository.root)
    assert jars(LOCK, tmp_path / "cache") == directory
    assert len(repository.asked) == 2


def test_many_that_start_at_once_fetch_once(repository: Repository, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        directories = set(pool.map(lambda _: jars(LOCK, tmp_path / "cache"), range(8)))
    assert len(directories) == 1
    assert len(repository.asked) == 2


def test_a_jar_that_is_not_the_locked_one_is_refused_and_nothing_is_kept(
    repository: Repository, tmp_path: Path
) -> None:
    repository.path("org.one:first:1.0").write_bytes(b"another jar")
    with pytest.raises(BrokerFailed, match=r"first-1.0.jar has the SHA-256 digest .* not .* as locked"):
        jars(LOCK, tmp_path / "cache")
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []
    repository.path("org.one:first:1.0").write_bytes(BYTES["org.one:first:1.0"])
    jars(LOCK, tmp_path / "cache")


def test_a_jar_that_changed_in_the_cache_is_refused(repository: Repository, tmp_path: Path) -> None:
    directory = jars(LOCK, tmp_path / "cache")
    (directory / "first-1.0.jar").write_bytes(b"first jar, and more")
    with pytest.raises(BrokerFailed, match=f"SHA-256 digest.*delete {directory}"):
        jars(LOCK, tmp_path / "cache")


def test_what_the_repository_lacks_is_one_message_with_the_ways_out(repository: Repository, tmp_path: Path) -> None:
    shutil.rmtree(repository.root / "org")
    with pytest.raises(BrokerFailed, match=r"(?s)cannot be fetched.*HTTPS_PROXY.*copy .*--bootstrap"):
        jars(LOCK, tmp_path / "cache")


def test_a_repository_that_does_not_answer_is_the_same_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REPOSITORY_VARIABLE, "http://127.0.0.1:9/")
    with pytest.raises(BrokerFailed, match=r"(?s)cannot be fetched.*HTTPS_PROXY.*copy .*--bootstrap"):
        jars(LOCK, tmp_path / "cache")


def test_the_lock_names_kafka_and_what_it_logs_with() -> None:
    lock = read_lock()
    assert f"org.apache.kafka:kafka_2.13:{lock.kafka}" in lock.jars
    assert any(":log4j-slf4j-impl:" in coordinate for coordinate in lock.jars)
    assert all(len(digest) == 64 for digest in lock.jars.values())
