"""From a place to its URI and back: the one pair of functions for both, so that any folder's name survives the way.

A `file://` URI is percent-encoded: a space, `%`, `#` or `日本` in a path is written as RFC 8089 has it, and read back.
"""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fsspec

_FILE = "file://"
_WITHOUT_DIRECTORIES = {"s3", "gs", "abfs"}
"""Stores that have only names of objects; for S3 making a directory means making its bucket, if that is not there."""


def uri_of(place: str | Path) -> str:
    """The URI of a path, made absolute; a text with `://` is one already."""
    if isinstance(place, str) and "://" in place:
        return place
    return Path(place).resolve().as_uri()


def file_system(uri: str) -> tuple[Any, str]:  # fsspec's own types say text or bytes everywhere
    """fsspec's file system for a URI of `uri_of`, and the path in it."""
    if uri.startswith(_FILE):
        return fsspec.filesystem("file"), unquote(uri.removeprefix(_FILE)).rstrip("/")
    # another machine may have written there a moment ago
    files, path = fsspec.core.url_to_fs(uri, use_listings_cache=False)
    return files, path.rstrip("/")


def make_directory(files: Any, path: str) -> None:
    """Make it, with all above it, where a file needs one. Harmless when it is there."""
    if has_directories(files):
        files.makedirs(path, exist_ok=True)


def has_directories(files: Any) -> bool:
    """Whether a directory there is more than a beginning that names have in common."""
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    return not protocols & _WITHOUT_DIRECTORIES


def unanswered() -> tuple[type[Exception], ...]:
    """What S3's library raises when no answer came (no credentials, nobody there): no OSError, as its others are."""
    botocore = sys.modules.get("botocore.exceptions")
    return (botocore.BotoCoreError,) if botocore else ()
