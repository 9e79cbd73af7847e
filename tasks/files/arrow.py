"""Rows of Parquet and Arrow. A column may hold JSON text, for neither has columns of mixed types, and tests have them.

Nulls. Arrow gives every object of a column the same keys, and null where a row has none: such a null is left out. Where
a key's every value is null (its type is `null`), the data said so: it is kept in `metadata`, `task`, `args` and
`expected`. In `args` and `expected` of another type nobody can know what a null was: that row is refused. In JSON text
nulls are what they are in JSONL.
"""

import io
import json
from collections.abc import Container, Iterator, Sequence
from datetime import date, datetime, time
from typing import IO, TYPE_CHECKING, Any

import msgspec

from tasks.files.row import Row, Unreadable

if TYPE_CHECKING:
    import pyarrow as pa

NESTED = ("messages", "grader", "sampling", "source", "metadata")
"""Columns that may be JSON text."""
_JUDGED = ("args", "expected")
_FREE = ("metadata", "task")


def parquet_rows(stream: IO[bytes], wanted: Container[str] | None = None) -> Iterator[Row | Unreadable]:
    """Every row. A row group that cannot be read costs its rows. Raises ValueError or OSError for no Parquet at all.

    `wanted`: columns of data in a form of its own: only those are read, and nulls stay; None: the rows are prompts.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(stream)
    names = file.schema_arrow.names
    read = None if wanted is None else [name for name in names if name in wanted] or names[:1]
    begin = 0
    for group in range(file.num_row_groups):
        number = begin
        count = file.metadata.row_group(group).num_rows
        begin += count
        try:
            for batch in file.iter_batches(batch_size=256, row_groups=[group], columns=read):
                yield from _batch_rows(batch, number, wanted, names)
                number += batch.num_rows
        except (OSError, pa.ArrowException) as error:
            lost = begin - number
            yield Unreadable(number + 1, f"{lost} rows from here on cannot be read: {error}")


def arrow_rows(stream: IO[bytes], wanted: Container[str] | None = None) -> Iterator[Row | Unreadable]:
    """Every row of an Arrow stream (Hugging Face's `datasets` writes them) or file; a cut one gives the rows before."""
    import pyarrow as pa

    of_file = stream.read(6) == b"ARROW1"
    stream.seek(-4, io.SEEK_END)
    ended = of_file or stream.read(4) == bytes(4)
    stream.seek(0)
    number = 0
    try:
        for batch in _batches(stream) if of_file else pa.ipc.open_stream(stream):
            yield from _batch_rows(batch, number, wanted, batch.schema.names)
            number += batch.num_rows
    except (OSError, pa.ArrowException) as error:
        yield Unreadable(number + 1, f"the file breaks off or is damaged here: {error}")
    else:
        if not ended:  # Arrow takes a stream that stops between two batches for a whole one
            yield Unreadable(number + 1, "the file breaks off here: its end is not marked")


def _batches(stream: IO[bytes]) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    file = pa.ipc.open_file(stream)
    return (file.get_batch(place) for place in range(file.num_record_batches))


def _batch_rows(
    batch: "pa.RecordBatch", before: int, wanted: Container[str] | None, names: Sequence[str]
) -> Iterator[Row | Unreadable]:
    """Each row as an object of all `names`, those that are not wanted as null, where the form is not a prompt's."""
    if wanted is not None:
        batch = batch.select([name for name in batch.schema.names if name in wanted])
    others = [] if wanted is None else [json.dumps(name).encode() + b": null" for name in names if name not in wanted]
    for place in range(batch.num_rows):
        number = before + place + 1
        try:
            yield Row(number, _row(batch, place, others, of_prompts=wanted is None))
        except (ValueError, UnicodeDecodeError) as error:
            yield Unreadable(number, str(error))


def _row(batch: "pa.RecordBatch", place: int, others: list[bytes], *, of_prompts: bool) -> bytes:
    """The row as JSON text. Raises ValueError, which names the column."""
    fields = list(others)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        try:
            (value,) = column.slice(place, 1).to_pylist(maps_as_pydicts="strict")
            if value is None and of_prompts:
                continue
            text = _json_text(value) if field.name in NESTED and isinstance(value, str) else None
            if text is None:
                plain = _plain(value, field.type, free=not of_prompts or field.name in _FREE)
                text = json.dumps(plain, allow_nan=False).encode()
        except (ValueError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(f"column `{field.name}`: {error}") from error
        fields.append(json.dumps(field.name).encode() + b": " + text)
    return b"{" + b", ".join(fields) + b"}"


def _json_text(value: str) -> bytes:
    """What the cell says, byte for byte, so that whole numbers of any size stay what they are."""
    text = value.encode()
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        raise ValueError(f"no JSON text: {error}") from error
    return text


def _plain(value: Any, kind: "pa.DataType", *, free: bool = False, judged: bool = False) -> Any:
    """The value as JSON has it. `free`: it may have any form; `judged`: and answers are held against it."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _plain(value, kind.value_type, free=free, judged=judged)
    if isinstance(value, dict) and types.is_struct(kind):
        return _object(value, kind, free=free, judged=judged)
    if isinstance(value, dict):
        return {str(key): _plain(inner, kind.item_type, free=free, judged=judged) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, kind.value_type, free=free, judged=judged) for inner in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ValueError(f"{kind} has no form in JSON: make it a number or a text")


def _object(value: dict[str, Any], kind: Any, *, free: bool, judged: bool) -> dict[str, Any]:
    import pyarrow.types as types

    found: dict[str, Any] = {}
    for field in kind:
        inner = value[field.name]
        said = types.is_null(field.type) and (free or judged)
        if inner is None and judged and not said:
            raise ValueError(
                f"`{field.name}` is null in a test, and nobody can know whether the row said so or had no such key: "
                "write `grader` as JSON text"
            )
        if inner is not None or said:
            inside = judged or field.name in _JUDGED
            found[field.name] = _plain(inner, field.type, free=free or field.name in _FREE, judged=inside)
    return found
