"""A blob is what its digest says, or an error."""

from pathlib import Path

import msgspec
import pytest

from tests.unit.wire.doubles import files_in
from wire.blobs import BlobStore
from wire.errors import BlobMismatch


async def test_what_is_put_comes_back(tmp_path: Path) -> None:
    store = BlobStore(tmp_path.as_uri())
    ref = await store.put(b"x" * 1000)
    assert ref.bytes == 1000
    assert await store.get(ref) == b"x" * 1000
    assert await store.put(b"x" * 1000) == ref
    assert len(files_in(tmp_path)) == 1


async def test_changed_bytes_are_refused(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path))
    ref = await store.put(b"abc")
    [path] = files_in(tmp_path)
    path.write_bytes(b"abd")
    with pytest.raises(BlobMismatch, match="not those"):
        await store.get(ref)


async def test_a_missing_blob_says_what_to_check(tmp_path: Path) -> None:
    ref = await BlobStore(str(tmp_path)).put(b"abc")
    with pytest.raises(BlobMismatch, match="lifetime"):
        await BlobStore(str(tmp_path)).get(msgspec.structs.replace(ref, uri=ref.uri + "x"))
