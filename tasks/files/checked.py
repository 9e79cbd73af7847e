"""Prompts from a file: JSONL or Parquet, local or any fsspec URL, checked line by line before one is sent.

What passes waits in a temporary file, so that a shuffle or a second epoch costs eight bytes a prompt in memory and the
source is read once. accepted + refused = lines of the file.
"""

import json
import random
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

import fsspec
import msgspec

from schemas import Prompt, SchemaError
from schemas.codec import decode, encode
from schemas.topics import prompts_topic
from tasks.errors import UnreadableData

READABLE = ".jsonl (.gz, .zst, .bz2, .xz) or .parquet"
_MAX_REPORTED = 1000
_NESTED = ("messages", "grader", "sampling", "source", "metadata")


class Refusal(NamedTuple):
    """A line that was not sent, and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class CheckedPrompts:
    """The prompts of one file that can be sent, and what was refused. Use as a context manager."""

    def __init__(self, file: str, defaults: Mapping[str, Any] | None = None) -> None:
        """`defaults`: what a prompt has that does not say it itself; `sampling` is filled key by key."""
        self.file = file
        self.defaults = defaults
        self.lines = 0
        self.refusals: list[Refusal] = []
        """The first thousand; `refused` counts all."""
        self.refused = 0
        self.domains: set[str] = set()
        self._offsets = array("Q")
        self._spool: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> "CheckedPrompts":
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    @property
    def accepted(self) -> int:
        return len(self._offsets)

    def read(self) -> None:
        """Read and check the whole file. Raises UnreadableData when it cannot be read at all."""
        for number, line in _lines(self.file):
            self.lines += 1
            try:
                prompt = check_prompt(_filled(line, self.defaults) if self.defaults else line)
            except SchemaError as error:
                self.refused += 1
                if len(self.refusals) < _MAX_REPORTED:
                    self.refusals.append(Refusal(self.file, number, str(error)))
                continue
            self.domains.add(prompt.domain)
            self._offsets.append(self._spool.tell())
            self._spool.write(msgspec.json.encode(prompt) + b"\n")

    def prompts(self, epochs: int = 1, shuffle_seed: int | None = None) -> Iterator[Prompt]:
        """Every accepted prompt once an epoch; each epoch in an order of its own when shuffled."""
        for epoch in range(epochs):
            order = list(range(self.accepted))
            if shuffle_seed is not None:
                random.Random(f"{shuffle_seed}/{epoch}").shuffle(order)
            for place in order:
                self._spool.seek(self._offsets[place])
                prompt = msgspec.json.decode(self._spool.readline(), type=Prompt)
                yield msgspec.structs.replace(prompt, epoch=prompt.epoch + epoch) if epoch else prompt


def check_prompt(line: bytes) -> Prompt:
    """The prompt in one line of JSON. Raises SchemaError with a reason a person can act on."""
    spec = prompts_topic("any")
    event = decode(line, spec)
    if not isinstance(event, Prompt):
        raise SchemaError("`source_end` is written by a run's own task sources; publish prompts")
    encode(event, prompts_topic(event.domain))
    return event


def _filled(line: bytes, defaults: Mapping[str, Any]) -> bytes:
    """The line with what it does not say; unchanged where it is no object, which its check will say."""
    try:
        prompt = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        sampling = msgspec.json.decode(prompt.get("sampling", b"{}"), type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return line
    if prompt.get("type", b'"prompt"') != b'"prompt"':
        return line
    return msgspec.json.encode({**defaults, **prompt, "sampling": {**defaults["sampling"], **sampling}})


def _lines(file: str) -> Iterator[tuple[int, bytes]]:
    """(line or row number from 1, JSON text). Blank lines are skipped."""
    try:
        if file.endswith(".parquet"):
            yield from _parquet_rows(file)
        elif ".jsonl" in file or ".json" in file or "." not in file.rsplit("/", 1)[-1]:
            with fsspec.open(file, "rb", compression="infer") as opened:
                for number, line in enumerate(opened, start=1):
                    if line.strip():
                        yield number, bytes(line)
        else:
            raise UnreadableData(f"{file}: no kind of file that is known here; give {READABLE}")
    except FileNotFoundError as error:
        raise UnreadableData(f"{file}: no such file") from error
    except (OSError, ValueError, ImportError) as error:
        raise UnreadableData(f"{file}: cannot be read: {error}") from error


def _parquet_rows(file: str) -> Iterator[tuple[int, bytes]]:
    import pyarrow.parquet

    with fsspec.open(file, "rb") as opened:
        number = 0
        for batch in pyarrow.parquet.ParquetFile(opened).iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                yield number, json.dumps(_from_columns(row), default=str).encode()


def _from_columns(row: dict[str, Any]) -> Any:
    """A column may hold a nested field as JSON text: Parquet has no column of mixed types, and tests have them."""
    parsed = {
        name: json.loads(value) if name in _NESTED and isinstance(value, str) else value for name, value in row.items()
    }
    return _without_nulls(parsed)


def _without_nulls(value: Any) -> Any:
    """Parquet fills absent fields of a struct with null; the contract says absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
