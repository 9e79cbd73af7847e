"""A snapshot arrives whole and as announced, or not at all."""

import shutil
from pathlib import Path

import msgspec
import pytest

from schemas import Snapshot
from wire.errors import SnapshotMismatch
from wire.weights.snapshots import describe, fetch, snapshot_digest


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    (directory / "tokenizer").mkdir(parents=True)
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(bytes(range(256)) * 100)
    (directory / "tokenizer" / "vocab.txt").write_text("a b c")
    return directory


def test_the_manifest_names_every_file_with_its_size_and_digest(model: Path) -> None:
    snapshot = describe(model, 3)
    assert snapshot.uri == model.as_uri()
    assert snapshot.version == 3
    assert [file.name for file in snapshot.files] == ["config.json", "model.safetensors", "tokenizer/vocab.txt"]
    assert snapshot.files[1].bytes == 25_600
    assert snapshot.digest == snapshot_digest(snapshot.files)


def test_path_text_and_url_describe_the_same(model: Path) -> None:
    assert describe(model, 1) == describe(str(model), 1) == describe(model.as_uri(), 1)


@pytest.mark.parametrize("name", [*"é日+%#&=@;?*~", "a b", "%41", "a:b", "a::b", "[ab]"])
async def test_a_folder_may_have_any_name(model: Path, tmp_path: Path, name: str) -> None:
    moved = Path(shutil.move(model, tmp_path / name))
    snapshot = describe(moved, 1)
    copy = await fetch(snapshot, tmp_path / f"cache {name}", keep=2)
    assert (copy / "tokenizer" / "vocab.txt").read_text() == "a b c"
    assert describe(str(moved), 1) == describe(snapshot.uri, 1) == snapshot


async def test_a_fetched_copy_is_the_same(model: Path, tmp_path: Path) -> None:
    snapshot = describe(model, 1)
    copy = await fetch(snapshot, tmp_path / "cache", keep=2)
    assert describe(copy, 1).digest == snapshot.digest
    assert await fetch(snapshot, tmp_path / "cache", keep=2) == copy


@pytest.mark.parametrize("harm", ["changed", "cut", "gone"])
async def test_other_bytes_than_announced_are_refused(model: Path, tmp_path: Path, harm: str) -> None:
    snapshot = describe(model, 1)
    weights = model / "model.safetensors"
    if harm == "changed":
        weights.write_bytes(b"x" + weights.read_bytes()[1:])
    elif harm == "cut":
        weights.write_bytes(weights.read_bytes()[:-1])
    else:
        weights.unlink()
    with pytest.raises(SnapshotMismatch, match=r"model\.safetensors"):
        await fetch(snapshot, tmp_path / "cache", keep=2)
    assert list((tmp_path / "cache").iterdir()) == []


async def test_a_manifest_that_was_tampered_with_is_refused(model: Path, tmp_path: Path) -> None:
    snapshot = msgspec.structs.replace(describe(model, 1), digest="0" * 64)
    with pytest.raises(SnapshotMismatch, match="digest"):
        await fetch(snapshot, tmp_path / "cache", keep=2)


async def test_a_manifest_cannot_write_outside_the_cache(model: Path, tmp_path: Path) -> None:
    good = describe(model, 1)
    files = (msgspec.structs.replace(good.files[0], name="../escaped.json"),)
    snapshot = Snapshot(uri=good.uri, version=1, files=files, digest=snapshot_digest(files))
    with pytest.raises(SnapshotMismatch, match="outside"):
        await fetch(snapshot, tmp_path / "cache", keep=2)
    assert not (tmp_path / "escaped.json").exists()


async def test_the_cache_keeps_the_last_used(model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    copies: list[Path] = []
    for version in range(4):
        (model / "config.json").write_text(f'{{"version": {version}}}')
        copies.append(await fetch(describe(model, version), cache, keep=2))
    assert [path.exists() for path in copies] == [False, False, True, True]


def test_an_empty_directory_is_no_snapshot(tmp_path: Path) -> None:
    with pytest.raises(SnapshotMismatch, match="no files"):
        describe(tmp_path, 0)


async def test_a_store_that_does_not_answer_is_as_one_without_the_bytes(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What S3's library raises then is no OSError; a worker is to keep the weights that it has."""
    from botocore.exceptions import EndpointConnectionError

    def nobody(uri: str) -> None:
        raise EndpointConnectionError(endpoint_url=uri)

    snapshot = describe(model, 1)
    monkeypatch.setattr("wire.weights.snapshots.file_system", nobody)
    with pytest.raises(SnapshotMismatch, match="cannot be fetched: Could not connect"):
        await fetch(snapshot, tmp_path / "cache", keep=2)
    assert list((tmp_path / "cache").iterdir()) == []
