"""Prompts from a file: JSONL or Parquet, local or any fsspec URL, checked line by line before one is sent.

What passes waits in a temporary file, so that a shuffle or a second epoch costs eight bytes a prompt in memory and the
source is read once. accepted + refused = lines of the file.
"""

import random
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

import msgspec

from schemas import Prompt, Purpose, SchemaError
from schemas.codec import decode, encode
from schemas.topics import prompts_topic
from tasks.errors import UnreadableData
from tasks.files.read import rows_of
from tasks.files.row import Row, Unreadable

_MAX_REPORTED = 1000


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
        self.purposes: set[Purpose] = set()
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
        """Read and check the whole file. Raises UnreadableData when it cannot be read at all, or holds nothing."""
        for row in rows_of(self.file):
            self.lines += 1
            try:
                self._accept(row)
            except SchemaError as error:
                self.refused += 1
                if len(self.refusals) < _MAX_REPORTED:
                    self.refusals.append(Refusal(self.file, row.number, str(error)))
        if not self.lines:
            raise UnreadableData(f"{self.file}: no prompt in it: the file is empty")

    def _accept(self, row: Row | Unreadable) -> None:
        if isinstance(row, Unreadable):
            raise SchemaError(row.reason)
        prompt = check_prompt(_filled(row.text, self.defaults) if self.defaults else row.text)
        self.domains.add(prompt.domain)
        self.purposes.add(prompt.purpose)
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
