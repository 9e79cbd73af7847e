"""What a reader of files hands on: a row as JSON text, or why there is none."""

from typing import NamedTuple


class Row(NamedTuple):
    """One row of a file, as the JSON text of an object."""

    number: int
    """Of the line, element or row, from 1."""
    text: bytes


class Unreadable(NamedTuple):
    """A row, or all from here to the file's end, that cannot be read."""

    number: int
    reason: str
