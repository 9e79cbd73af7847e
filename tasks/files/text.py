"""JSON as text: JSONL, or one JSON array, in UTF-8 or in UTF-16 and UTF-32 with or without their mark."""

import codecs
import io
import itertools
from collections.abc import Iterator
from typing import IO, Any

import msgspec

from tasks.files.row import Row, Unreadable

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16's, which it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def text_rows(stream: IO[bytes]) -> Iterator[Row | Unreadable]:
    """Every line that is not blank, or every element of the one array. What ends the stream too early is raised."""
    lines = _lines(stream)
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        return
    number, line = first
    begins = line.lstrip()[:1]
    if begins not in (b"[", b"{") or (begins == b"{" and _fault(line) is None):
        yield from _checked(itertools.chain([first], lines))
        return
    rest = list(lines)
    whole = b"".join([line, *(line for _, line in rest)])
    rows = _elements(whole)
    if rows is not None:
        yield from (Row(place, bytes(row)) for place, row in enumerate(rows, start=1))
    elif begins == b"[" and _fault(line) is not None:
        yield Unreadable(
            number, f"a JSON array that cannot be read: {_fault(whole) or 'it is none'}; JSONL is read line by line"
        )
    else:
        yield from _checked([first, *rest])


def _checked(lines: "Iterator[tuple[int, bytes]] | list[tuple[int, bytes]]") -> Iterator[Row | Unreadable]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            line.decode()
        except UnicodeDecodeError as error:
            yield Unreadable(
                number,
                f"no UTF-8: byte {line[error.start]:#04x} at place {error.start + 1}; convert the file, for example "
                "with `iconv -f latin1 -t utf-8`",
            )
        else:
            yield Row(number, line)


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(number, bytes of UTF-8) of each line."""
    buffered: Any = stream if hasattr(stream, "peek") else io.BufferedReader(stream)  # pyright: ignore[reportArgumentType]
    encoding = _encoding(buffered.peek(4)[:4])
    if encoding == "utf-8-sig":
        buffered.read(len(codecs.BOM_UTF8))
    if encoding in (None, "utf-8-sig"):
        yield from enumerate(buffered, start=1)
        return
    with io.TextIOWrapper(buffered, encoding=encoding, newline="\n") as text:
        yield from ((number, line.encode()) for number, line in enumerate(text, start=1))


def _encoding(head: bytes) -> str | None:
    """What the first four bytes say; None: UTF-8 without a mark."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    if len(head) < 4 or 0 not in head:
        return None
    # RFC 4627, section 3: the first two characters of JSON are ASCII, so the zeros tell the encoding
    if head[0] == 0:
        return "utf-32-be" if head[1] == 0 else "utf-16-be"
    return "utf-32-le" if head[1:] == bytes(3) else "utf-16-le"


def _fault(text: bytes) -> str | None:
    """Why it is no JSON; None: it is."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        return str(error)
    return None


def _elements(text: bytes) -> list[msgspec.Raw] | None:
    """The elements of one array, or the one object; None for anything else."""
    try:
        text.decode()
        return msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        if text.lstrip().startswith(b"{") and _fault(text) is None:
            return [msgspec.Raw(text)]
        return None
