"""Snapshots: a Hugging Face directory in a file store, named on the log by a manifest with every file's digest."""

import asyncio
import hashlib
import logging
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from schemas import Snapshot, WeightFile
from wire.errors import SnapshotMismatch
from wire.uris import file_system, unanswered, uri_of

log = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 22


def describe(directory: str | Path, version: int) -> Snapshot:
    """The manifest of a finished directory: a path, or a URL that fsspec knows. Reads every byte.

    Raises SnapshotMismatch when there is no file in it.
    """
    uri = uri_of(directory)
    files, root = file_system(uri)
    names = sorted(path[len(root) :].lstrip("/") for path in files.find(root))
    if not names:
        raise SnapshotMismatch(f"{uri} holds no files")
    described = tuple(
        WeightFile(name=name, bytes=int(files.size(f"{root}/{name}")), sha256=_digest(files, f"{root}/{name}"))
        for name in names
    )
    return Snapshot(uri=uri, version=version, files=described, digest=snapshot_digest(described))


def snapshot_digest(files: tuple[WeightFile, ...]) -> str:
    """sha256 over the sorted lines `name sha256`."""
    lines = sorted(f"{file.name} {file.sha256}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


async def fetch(snapshot: Snapshot, cache_directory: Path, *, keep: int) -> Path:
    """A local copy of the snapshot, each byte of it verified; the `keep` last used stay in the cache.

    Raises SnapshotMismatch when a file cannot be had, or has another size or digest than the manifest says.
    """
    return await asyncio.to_thread(_fetch, snapshot, cache_directory, keep)


def _fetch(snapshot: Snapshot, cache: Path, keep: int) -> Path:
    if snapshot_digest(snapshot.files) != snapshot.digest:
        raise SnapshotMismatch(f"the manifest of {snapshot.uri} does not have the digest that it says")
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / snapshot.digest
    if not target.exists():
        unfinished = cache / f".{snapshot.digest}.{os.getpid()}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        try:
            files, root = file_system(snapshot.uri)
            for file in snapshot.files:
                _copy(files, f"{root}/{file.name}", file, unfinished / file.name, snapshot)
            unfinished.replace(target)  # whole, or not there
        except unanswered() as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise SnapshotMismatch(f"{snapshot.uri} cannot be fetched: {error}") from error
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    os.utime(target)
    _prune(cache, keep)
    return target


def _copy(files: Any, source: str, file: WeightFile, target: Path, snapshot: Snapshot) -> None:
    if PurePosixPath(file.name).is_absolute() or ".." in PurePosixPath(file.name).parts:
        raise SnapshotMismatch(f"the manifest of {snapshot.uri} names a file outside of it: {file.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    size = 0
    try:
        with files.open(source, "rb") as reading, target.open("wb") as writing:
            while chunk := reading.read(_CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
                writing.write(chunk)
    except FileNotFoundError as error:
        raise SnapshotMismatch(f"{snapshot.uri} has no {file.name} (any more)") from error
    if size != file.bytes or digest.hexdigest() != file.sha256:
        raise SnapshotMismatch(
            f"{file.name} of {snapshot.uri} has {size:,} bytes, sha256 {digest.hexdigest()[:12]}…; "
            f"the manifest says {file.bytes:,} bytes, {file.sha256[:12]}…"
        )


def _prune(cache: Path, keep: int) -> None:
    snapshots = [path for path in cache.iterdir() if not path.name.startswith(".")]
    snapshots.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for old in snapshots[keep:]:
        log.info("snapshot %s leaves the cache", old.name[:12])
        shutil.rmtree(old)


def _digest(files: Any, path: str) -> str:
    digest = hashlib.sha256()
    with files.open(path, "rb") as reading:
        while chunk := reading.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
