"""A file's rows, whatever it is: what its bytes say decides, not its name."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Container, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import fsspec

from tasks.errors import UnreadableData
from tasks.files.arrow import arrow_rows, parquet_rows
from tasks.files.paths import KINDS, suffix
from tasks.files.row import Row, Unreadable
from tasks.files.text import text_rows

READABLE = ".jsonl, .json (.gz, .zst, .bz2, .xz), .parquet or .arrow"
_CUT = (EOFError, OSError, zlib.error, lzma.LZMAError, UnicodeDecodeError)
"""What a stream raises that ends too early, or whose bytes are damaged."""


def rows_of(file: str, wanted: Container[str] | None = None) -> Iterator[Row | Unreadable]:
    """Every row of a file, of which only `wanted` columns are needed; None: they are prompts.

    Raises UnreadableData where there is no such file, or one of another kind.
    """
    if suffix(file) not in ("", *KINDS):
        raise UnreadableData(f"{file}: no kind of file that is known here; give {READABLE}")
    try:
        with open_file(file) as opened:
            stream, head = _opened(opened)
            if head.startswith(b"PAR1"):
                yield from parquet_rows(opened, wanted)
                return
            if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
                yield from arrow_rows(opened, wanted)
                return
            if suffix(file) in (".parquet", ".arrow") and not head.lstrip().startswith((b"{", b"[")):
                raise UnreadableData(f"{file}: cannot be read: no {suffix(file)[1:].capitalize()} file")
            yield from _to_the_cut(text_rows(stream))
    except FileNotFoundError as error:
        raise UnreadableData(f"{file}: no such file") from error
    except (OSError, ValueError, ImportError) as error:
        raise UnreadableData(f"{file}: cannot be read: {error}") from error


def open_file(file: str) -> AbstractContextManager[IO[bytes]]:
    """Open a path, whatever characters it has, or a URL that fsspec knows."""
    return fsspec.open(file, "rb") if "://" in file else Path(file).expanduser().open("rb")  # pyright: ignore[reportReturnType]


def _opened(opened: IO[bytes]) -> tuple[IO[bytes], bytes]:
    """The stream of what is in it, and how that begins."""
    head = opened.read(6)
    opened.seek(0)
    if head.startswith(b"\x1f\x8b"):
        stream: Any = gzip.GzipFile(fileobj=opened)
    elif head.startswith(b"BZh"):
        stream = bz2.BZ2File(opened)
    elif head.startswith(b"\xfd7zXZ\0"):
        stream = lzma.LZMAFile(opened)  # noqa: SIM115 - what it reads is closed by who opened it
    elif head.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        stream = pa.CompressedInputStream(opened, "zstd")
    else:
        return opened, head
    return stream, b""


def _to_the_cut(rows: Iterator[Row | Unreadable]) -> Iterator[Row | Unreadable]:
    """The rows; where the stream breaks off, that is one more that cannot be read."""
    number = 0
    try:
        for row in rows:
            number = row.number
            yield row
    except _CUT as error:
        yield Unreadable(number + 1, f"the file breaks off or is damaged here: {error}")
