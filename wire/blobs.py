"""Large values beside the log: written once under their digest, named on the log by a claim check.

A blob must outlive the retention of the topic that names it.
"""

import asyncio
import hashlib
import uuid

import msgspec

from wire.errors import BlobMismatch
from wire.uris import file_system, make_directory, uri_of


class BlobRef(msgspec.Struct, frozen=True, kw_only=True):
    """A claim check: where the bytes are and how to know them."""

    uri: str
    sha256: str
    bytes: int


class BlobStore:
    """Blobs under one root: any URL that fsspec knows (`file://`, `s3://`, …) or a path."""

    def __init__(self, root: str) -> None:
        self._root = uri_of(root).rstrip("/")

    async def put(self, data: bytes) -> BlobRef:
        """Store the bytes; the same bytes again cost a look. The blob is whole or not there."""
        digest = hashlib.sha256(data).hexdigest()
        uri = f"{self._root}/{digest[:2]}/{digest}"
        await asyncio.to_thread(_put, uri, data)
        return BlobRef(uri=uri, sha256=digest, bytes=len(data))

    async def get(self, ref: BlobRef) -> bytes:
        """The bytes. Raises BlobMismatch when they are not there, or not those that were put."""
        return await asyncio.to_thread(_get, ref)


def _put(uri: str, data: bytes) -> None:
    files, path = file_system(uri)
    if files.exists(path) and files.size(path) == len(data):
        return
    parent = path.rpartition("/")[0]
    make_directory(files, parent)
    unfinished = f"{parent}/.{uuid.uuid4().hex}"
    try:
        files.pipe_file(unfinished, data)
        files.mv(unfinished, path)
    except BaseException:
        if files.exists(unfinished):
            files.rm_file(unfinished)
        raise


def _get(ref: BlobRef) -> bytes:
    files, path = file_system(ref.uri)
    try:
        data: bytes = files.cat_file(path)
    except FileNotFoundError as error:
        raise BlobMismatch(f"blob {ref.uri} is not there: its lifetime must be longer than the topic's") from error
    if hashlib.sha256(data).hexdigest() != ref.sha256:
        raise BlobMismatch(f"blob {ref.uri} holds {len(data):,} bytes that are not those of its digest")
    return data
