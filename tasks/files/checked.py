"""Prompts from files, local or at any fsspec URL, checked row by row before one is sent.

What passes waits in a temporary file, so that a shuffle or a second epoch costs eight bytes a prompt in memory (some
hundreds where prompts have ids) and the source is read once. accepted + refused = rows of the files.
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
from tasks.files.forms import known_form
from tasks.files.mapping import ColumnMap
from tasks.files.paths import files_of
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
    """The prompts of a path's files that can be sent, and what was refused. Use as a context manager."""

    def __init__(self, path: str, defaults: Mapping[str, Any] | None = None, columns: ColumnMap | None = None) -> None:
        """`path`: as of `files_of`. `columns`: for rows that are no prompts yet.

        `defaults`: what a prompt has that does not say it itself; `sampling` is filled key by key.
        """
        self.path = path
        self.defaults = defaults or {}
        self.columns = columns
        self.lines = 0
        self.refusals: list[Refusal] = []
        """The first thousand; `refused` counts all."""
        self.refused = 0
        self.repeated = 0
        """Accepted ones whose domain, id and epoch an earlier one has: a run tries only that."""
        self.first_repeat = ""
        self.domains: set[str] = set()
        self.purposes: set[Purpose] = set()
        self._first_with: dict[tuple[str, str, int], str] = {}
        """(domain, id, epoch) → the file and row that has it."""
        self._offsets = array("Q")
        self._spool: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> "CheckedPrompts":
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    @property
    def accepted(self) -> int:
        return len(self._offsets)

    @property
    def has_ids(self) -> bool:
        return bool(self._first_with)

    def read(self) -> None:
        """Read and check all files. Raises UnreadableData for one that cannot be read at all, or holds nothing."""
        for file in files_of(self.path):
            before = self.lines
            for row in rows_of(file, self.columns.names if self.columns else None):
                self.lines += 1
                try:
                    self._accept(row, f"{file}:{row.number}")
                except SchemaError as error:
                    self.refused += 1
                    if len(self.refusals) < _MAX_REPORTED:
                        self.refusals.append(Refusal(file, row.number, str(error)))
            if self.lines == before:
                raise UnreadableData(f"{file}: no prompt in it: the file is empty")
        if self.accepted and self.columns is not None and self.columns.unseen:
            raise UnreadableData(f"{self.path}: no row has the column that `{min(self.columns.unseen)}` is mapped to")

    def _accept(self, row: Row | Unreadable, where: str) -> None:
        if isinstance(row, Unreadable):
            raise SchemaError(row.reason)
        prompt = self._checked(row.text)
        if prompt.id is not None:
            first = self._first_with.setdefault((prompt.domain, prompt.id, prompt.epoch), where)
            if first is not where:
                self.repeated += 1
                self.first_repeat = self.first_repeat or f"{where}: id {prompt.id!r} stands at {first} too"
        self.domains.add(prompt.domain)
        self.purposes.add(prompt.purpose)
        self._offsets.append(self._spool.tell())
        self._spool.write(msgspec.json.encode(prompt) + b"\n")

    def _checked(self, text: bytes) -> Prompt:
        if self.columns is not None:
            return check_prompt(_filled(self.columns.prompt(text), self.defaults))
        try:
            return check_prompt(_filled(text, self.defaults))
        except SchemaError as error:
            raise SchemaError(known_form(text) or str(error)) from error

    def must_be_whole(self) -> None:
        """Raise UnreadableData, which names the first row that could not be used."""
        if self.refused:
            raise UnreadableData(
                f"{self.refused} of {self.lines} rows of {self.path} are no prompts; the first: {self.refusals[0]}"
            )
        if self.repeated:
            raise UnreadableData(
                f"{self.repeated} of {self.lines} rows of {self.path} have the domain, id and epoch of another, of "
                f"which a run tries one; the first: {self.first_repeat}"
            )

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
    if not defaults:
        return line
    try:
        prompt = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        sampling = msgspec.json.decode(prompt.get("sampling", b"{}"), type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return line
    if prompt.get("type", b'"prompt"') != b'"prompt"':
        return line
    return msgspec.json.encode({**defaults, **prompt, "sampling": {**defaults.get("sampling", {}), **sampling}})
