"""From a place to its URI and back: the one pair of functions for both, so that any folder's name survives the way.

A `file://` URI is percent-encoded: a space, `%`, `#` or `日本` in a path is written as RFC 8089 has it, and read back.
"""

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fsspec

_FILE = "file://"


def uri_of(place: str | Path) -> str:
    """The URI of a path, made absolute; a text with `://` is one already."""
    if isinstance(place, str) and "://" in place:
        return place
    return Path(place).resolve().as_uri()


def file_system(uri: str) -> tuple[Any, str]:  # fsspec's own types say text or bytes everywhere
    """fsspec's file system for a URI of `uri_of`, and the path in it."""
    if uri.startswith(_FILE):
        return fsspec.filesystem("file"), unquote(uri.removeprefix(_FILE)).rstrip("/")
    files, path = fsspec.core.url_to_fs(uri)
    return files, path.rstrip("/")
