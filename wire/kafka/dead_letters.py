"""Events that could not be handled: what their headers say. Whose they are to write: `schemas.topics.first_reader`.

A dead letter's value is the original bytes, so that a mended reader can take it again.
"""

from enum import StrEnum

from wire.kafka.records import Record

MAX_REASON_CHARACTERS = 4096


class DeadLetterKind(StrEnum):
    """The class of a reason: bounded, for counting."""

    MALFORMED = "malformed"
    UNKNOWN_VERSION = "unknown_version"
    TOO_LARGE = "too_large"
    REJECTED = "rejected"
    """Well formed, but asks for something that cannot be done."""
    EXHAUSTED = "exhausted"
    """Every try at handling it failed."""
    POISONED = "poisoned"
    """The worker died twice over it."""


def dead_letter_key(record: Record) -> str:
    """Origin as a key: the same event twice is seen to be the same."""
    return f"{record.topic}/{record.partition}/{record.offset}"


def dead_letter_headers(
    record: Record, reason: str, kind: DeadLetterKind, attempts: int, first_seen: float, writer: str
) -> dict[str, bytes]:
    """What a person needs to act: why, from where, how often tried, and since when (Unix seconds)."""
    headers = {
        "reason": reason[:MAX_REASON_CHARACTERS],
        "kind": kind.value,
        "origin-topic": record.topic,
        "origin-partition": str(record.partition),
        "origin-offset": str(record.offset),
        "origin-key": record.key or "",
        "origin-writer": record.headers.get("writer", b"").decode("utf-8", "replace"),
        "attempts": str(attempts),
        "first-seen": f"{first_seen:.3f}",
        "writer": writer,
    }
    return {name: value.encode("utf-8", "surrogatepass") for name, value in headers.items()}
