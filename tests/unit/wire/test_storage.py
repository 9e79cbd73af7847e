"""A run's storage does the same at every kind of place: what is there is whole, taken once, and told in words."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wire.errors import StorageFailed
from wire.storage import Storage
from wire.uris import make_directory


@pytest.fixture(params=["a b é%#", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return Storage(f"memory://{uuid.uuid4().hex}" if request.param == "memory" else tmp_path / request.param)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    directory = tmp_path / "filled"
    (directory / "inner").mkdir(parents=True)
    (directory / "inner" / "a.bin").write_bytes(bytes(range(256)))
    (directory / "b.json").write_text("{}")
    return directory


def test_a_directory_goes_there_and_back(storage: Storage, filled: Path, tmp_path: Path) -> None:
    assert storage.names() == []
    storage.below("one").put(filled)
    assert storage.names() == ["one"]
    assert storage.below("one").names() == ["b.json", "inner"]
    assert storage.below("one").read("b.json") == b"{}"
    storage.below("one").get(tmp_path / "back")
    assert (tmp_path / "back" / "inner" / "a.bin").read_bytes() == bytes(range(256))
    storage.below("one").remove()
    assert storage.names() == []
    storage.below("one").remove()


def test_of_many_that_take_a_name_one_has_it(storage: Storage) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: Storage(storage.uri).take("incarnation-1"), range(32)))
    # fsspec's file system in memory has no exclusive mode: there only those that come later are refused
    assert taken.count(True) == 1 or (storage.uri.startswith("memory") and any(taken))
    assert not storage.take("incarnation-1")
    assert storage.take("incarnation-2")


def test_the_last_file_comes_after_all_others(filled: Path, tmp_path: Path) -> None:
    storage = Storage(tmp_path / "there")
    blocked = tmp_path / "there" / "inner"
    blocked.parent.mkdir()
    blocked.write_text("a file where a directory should be")
    with pytest.raises(StorageFailed):
        storage.put(filled, last="b.json")
    assert not storage.has("b.json")


@pytest.mark.parametrize(("uri", "why"), [("nonsense://bucket/run", "nonsense"), ("file:///proc/nobody/run", "/proc")])
def test_what_cannot_be_used_is_said(uri: str, why: str) -> None:
    with pytest.raises(StorageFailed, match=f"cannot be used here .*{why}"):
        Storage(uri).take("incarnation-1")


def test_no_bucket_is_made_where_a_directory_would_be() -> None:
    """s3fs makes a bucket for `makedirs`: a misspelt URL would then be one, or an error of a right nobody needs."""
    asked: list[str] = []

    class Store:
        protocol = ("s3", "s3a")

        def makedirs(self, path: str, exist_ok: bool) -> None:
            asked.append(path)

    class Server(Store):
        protocol = "sftp"

    make_directory(Store(), "bucket/runs")
    make_directory(Server(), "srv/runs")
    assert asked == ["srv/runs"]


def test_only_a_file_uri_is_a_directory_of_this_machine(tmp_path: Path) -> None:
    assert Storage(tmp_path / "a b").local == tmp_path / "a b"
    assert Storage("memory://bucket/runs").local is None
