"""Rows as people have them, made into prompts: which column is which field, and templates around columns.

A map has a prompt's fields as keys, and as values:

- a column's name: its cell as it is (`reward_model.ground_truth`: the key of an object in a column);
- a text with `{{column}}` in it: that text, with the cell's in it;
- a table or list: as it is, each text in it filled; one that is only `{{column}}` becomes the cell as it is.

Columns that are named as a prompt's fields need no mapping; all others are left out. `answer` stands for a grader: the
right answer, as `answer.py` finds and compares it. A text for `messages` is the user's message.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from schemas import Prompt, SchemaError
from tasks.files.answer import answer_grader
from tasks.files.chat import chat, chat_of_text, plain
from tasks.files.template import NoCell, Row, filled, json_text, names_in, text_of

_WRITTEN_BY_RUNS = {"schema_version", "run_id", "trace_id", "source"}
FIELDS = {field.name for field in msgspec.structs.fields(Prompt)} - _WRITTEN_BY_RUNS
_OBJECTS = {"grader", "sampling", "metadata"}
"""Fields that a column may hold as JSON text."""
_NEEDED = {"messages", "token_ids", "grader", "answer", "domain"}


class ColumnMap:
    """A map from a prompt's fields to columns, for one reading of files."""

    def __init__(self, fields: Mapping[str, Any], domain: str | None = None) -> None:
        """`domain`: of all prompts, unless the map says it; a column of that name is the data's own affair then.

        Raises ValueError for a map that makes no sense.
        """
        unknown = sorted(fields.keys() - FIELDS - {"answer"})
        if unknown:
            raise ValueError(f"a prompt has no field `{unknown[0]}`; fields: answer, {', '.join(sorted(FIELDS))}")
        if {"answer", "grader"} <= fields.keys():
            raise ValueError("map either `answer` or `grader`: `answer` stands for a grader that compares it")
        for field, value in fields.items():
            if not isinstance(value, str | Mapping | Sequence) or not value:
                raise ValueError(
                    f"`{field}`: give a column, a text with {{{{column}}}} in it, or a table of such texts"
                )
        self._fields = fields
        self._domain = domain
        self.names = FIELDS | {name for value in fields.values() for name in names_in(value, named=True)}
        """The columns that are looked at."""
        self.unseen = set(fields)
        """Fields whose columns no row had yet."""

    def prompt(self, text: bytes) -> bytes:
        """The row as a prompt's JSON text. Raises SchemaError, which names the column."""
        try:
            row = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError as error:
            raise SchemaError(f"no object of columns: {error}") from error
        try:
            return msgspec.json.encode(self._fields_of(row))
        except SchemaError:
            raise
        except (ValueError, RecursionError) as error:  # half a character, too many digits, brackets without end
            raise SchemaError(f"a cell that cannot be used: {error}") from error

    def _fields_of(self, row: Row) -> dict[str, Any]:
        found: dict[str, Any] = {name: cell for name, cell in row.items() if name in FIELDS and bytes(cell) != b"null"}
        if self._domain is not None:
            found["domain"] = self._domain
        for field, value in self._fields.items():
            try:
                found[field] = filled(value, row, named=True)
            except NoCell as error:
                if field in _NEEDED:
                    raise
                found.pop(field, None)
                if not error.there:
                    continue
            self.unseen.discard(field)
        if "messages" in found:
            found["messages"] = chat(found["messages"])
        if "answer" in found:
            found["grader"] = _grader(found, self._fields["answer"])
        if "domain" not in found:
            raise SchemaError("no domain: give --domain NAME, or map `domain`")
        if "id" in found:
            found["id"] = _as_text(found["id"])
        if isinstance(found.get("grader"), dict) and "answer" in found["grader"]:
            found["grader"]["answer"] = _as_text(found["grader"]["answer"])
        found |= {name: json_text(found[name]) for name in _OBJECTS & found.keys()}
        return found


def parsed_map(pairs: Sequence[str]) -> dict[str, Any]:
    """FIELD=COLUMN pairs of a command line; a JSON object or list is a template. Raises ValueError."""
    found: dict[str, Any] = {}
    for pair in pairs:
        field, equals, value = pair.partition("=")
        if not equals or not value:
            raise ValueError(f"--map {pair!r}: write it as FIELD=COLUMN, for example --map messages=prompt")
        template = value.startswith("[") or (value.startswith("{") and not value.startswith("{{"))
        try:
            found[field] = json.loads(value) if template else value
        except ValueError as error:
            raise ValueError(f"--map {field}: no JSON: {error}") from error
    return found


def _as_text(found: Any) -> Any:
    """A number of a column as the text that a field wants."""
    return text_of(found) if isinstance(found, msgspec.Raw) else found


def _grader(found: dict[str, Any], column: Any) -> Any:
    """The grader of the right answer; of a chat's, it is the assistant's last message, which is taken out."""
    answer = plain(found.pop("answer"))
    of_chat = chat_of_text(answer) if isinstance(answer, str) else answer
    if isinstance(of_chat, list) and of_chat and isinstance(of_chat[-1], dict):
        messages = found.get("messages")
        if not isinstance(messages, list) or len(messages) < 2 or messages[-1].get("role") != "assistant":
            raise SchemaError(f"`{column}`: the chat does not end with an answer of the assistant")
        answer = messages.pop().get("content")
    try:
        return answer_grader(answer)
    except ValueError as error:
        raise SchemaError(f"`{column}`: {error}") from error
