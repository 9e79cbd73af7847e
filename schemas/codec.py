"""Events to bytes and back, with errors that name the event, the field and the fix."""

import difflib
import re
from functools import cache
from typing import Any

import msgspec

from schemas.base import SCHEMA_VERSION, Event
from schemas.errors import EventTooLarge, MalformedEvent, UnknownVersion
from schemas.topics import TopicSpec

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Peek(msgspec.Struct):
    """The fields read before the event itself: they say how to read the rest."""

    schema_version: int = SCHEMA_VERSION
    type: str | None = None


def encode(event: Event, topic: TopicSpec[Event]) -> bytes:
    """JSON bytes. Raises EventTooLarge above the topic's limit, MalformedEvent for half a character in a text."""
    try:
        encoded = msgspec.json.encode(event)
    except UnicodeEncodeError as error:
        raise MalformedEvent(f"{describe(event)}: a text is no Unicode: {error}") from error
    if len(encoded) > topic.max_event_bytes:
        raise EventTooLarge(
            f"{describe(event)}: {len(encoded):,} bytes, but `{topic.name}` takes at most "
            f"{topic.max_event_bytes:,}; shorten it"
        )
    return encoded


def decode[E: Event](data: bytes, topic: TopicSpec[E]) -> E:
    """The event in `data`. An absent `type` is the topic's first event.

    Raises UnknownVersion for another major version and MalformedEvent for anything else that is
    wrong; the message names the field, and for an unknown field the nearest known one.
    """
    names = {event_name(event): event for event in topic.events}
    default = event_name(topic.events[0])
    if len(data) > topic.max_event_bytes:
        raise EventTooLarge(
            f"{default}: {len(data):,} bytes, but `{topic.name}` takes at most {topic.max_event_bytes:,}"
        )
    try:
        peek = msgspec.json.decode(data, type=_Peek)
    except _UNREADABLE as error:
        raise MalformedEvent(f"{default}: {error}") from error
    name = peek.type or default
    if name not in names:
        raise MalformedEvent(f"`{name}` is no event of topic `{topic.name}`{_nearest(name, list(names))}")
    if peek.schema_version != SCHEMA_VERSION:
        raise UnknownVersion(name, peek.schema_version, SCHEMA_VERSION)
    try:
        return _decoder(names[name]).decode(data)
    except _UNREADABLE as error:
        raise MalformedEvent(f"{name}: {_explain(str(error), names[name])}") from error


def event_name(event: type[Event]) -> str:
    """The event's `type` in JSON."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str), f"{event} has no tag"
    return tag


def describe(event: Event) -> str:
    """The event in a few words, for messages: its type and the first id it has."""
    for field in ("rollout_id", "execution_id", "group_id", "id", "run_id"):
        value = getattr(event, field, None)
        if value:
            return f"{event_name(type(event))} {value}"
    return event_name(type(event))


@cache
def _decoder[E: Event](event: type[E]) -> msgspec.json.Decoder[E]:
    return msgspec.json.Decoder(event)


def _explain(message: str, event: type[Event]) -> str:
    unknown = re.search(r"unknown field `(.*?)`", message)
    if unknown:
        return message + _nearest(unknown.group(1), _field_names(event))
    invalid_tag = re.search(r"Invalid value '(.*?)' - at `.*\.kind`", message)
    if invalid_tag:
        kinds = [_tag(part) for part in _structs(event) if part.__struct_config__.tag_field == "kind"]
        return f"{message}{_nearest(invalid_tag.group(1), kinds)} (known: {', '.join(sorted(kinds))})"
    return message


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean `{close[0]}`?" if close else f" (known: {', '.join(sorted(known))})"


def _tag(struct: type[msgspec.Struct]) -> str:
    return str(struct.__struct_config__.tag)


def _field_names(event: type[Event]) -> list[str]:
    return sorted({field.encode_name for part in _structs(event) for field in msgspec.structs.fields(part)})


def _structs(event: type[Event]) -> list[type[msgspec.Struct]]:
    """The event's own struct and every struct inside it."""
    found: list[type[msgspec.Struct]] = []

    def walk(info: Any) -> None:
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in found:
                return
            found.append(info.cls)
            for field in info.fields:
                walk(field.type)
        for name in ("types", "item_types"):
            for inner in getattr(info, name, ()):
                walk(inner)
        for name in ("item_type", "value_type", "type"):
            inner = getattr(info, name, None)
            if isinstance(inner, msgspec.inspect.Type):
                walk(inner)

    walk(msgspec.inspect.type_info(event))
    return found
