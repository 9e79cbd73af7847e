"""Templates around columns: a column's name, a text with `{{column}}` in it, or a table of such texts."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from schemas import SchemaError

_HOLE = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
Row = Mapping[str, msgspec.Raw]


class NoCell(SchemaError):
    """A cell that is not there, or null: the field that it is for has its default, where there is one."""

    def __init__(self, words: str, *, there: bool) -> None:
        super().__init__(words)
        self.there = there


def names_in(template: Any, *, named: bool = False) -> Iterator[str]:
    """The columns in a template: of `a.b`, the column of that name and `a`."""
    if isinstance(template, str):
        paths = _HOLE.findall(template) or ([template] if named else [])
        yield from (name for path in paths for name in (path, path.partition(".")[0]))
    elif isinstance(template, Mapping):
        yield from (name for inner in template.values() for name in names_in(inner))
    elif isinstance(template, Sequence):
        yield from (name for inner in template for name in names_in(inner))


def filled(template: Any, row: Row, *, named: bool = False) -> Any:
    """The template with cells in it. `named`: a text without a hole is a column's name."""
    if isinstance(template, str):
        whole = _HOLE.fullmatch(template)
        if whole or (named and not _HOLE.search(template)):
            return _cell(row, whole[1] if whole else template)
        return _HOLE.sub(lambda hole: text_of(_cell(row, hole[1])), template)
    if isinstance(template, Mapping):
        return {key: filled(inner, row) for key, inner in template.items()}
    if isinstance(template, Sequence):
        return [filled(inner, row) for inner in template]
    return template


def _cell(row: Row, path: str) -> msgspec.Raw:
    """What stands in a column, or below a key of the objects in it."""
    value, inside = row.get(path), row
    if value is None:
        for name in path.split("."):
            if name not in inside:
                raise NoCell(f"there is no column `{path}`, but: {', '.join(row)}", there=False)
            value = inside[name]
            inside = _object(value)
    if value is None or bytes(value) == b"null":
        raise NoCell(f"column `{path}` is null", there=True)
    return value


def _object(cell: msgspec.Raw) -> Row:
    """The keys of an object, or of one written as JSON text; none of anything else."""
    try:
        return msgspec.json.decode(json_text(cell), type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return {}


def json_text(found: Any) -> Any:
    """What a text says where it is JSON; anything else as it is, which its check refuses."""
    if not isinstance(found, msgspec.Raw) or not bytes(found).lstrip().startswith(b'"'):
        return found
    text = msgspec.json.decode(found, type=str).encode()
    try:
        return msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:
        return found


def text_of(cell: msgspec.Raw) -> str:
    """A text as it is, anything else as JSON; numbers as Python writes them, whatever the file's form."""
    value = json.loads(bytes(cell))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
