"""When a run will end, told from its updates so far. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_RECENT_UPDATES = 5
"""Answers get shorter or longer while a policy learns: what the newest took says most."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is to come."""

    seconds: float
    """Until training has ended, and what is measured after it."""
    updates: int
    """Of the whole training: fewer than `max_updates` when the time will end it."""


def estimate(
    updates: Sequence[dict[str, Any]],
    *,
    max_updates: int,
    max_seconds: float | None,
    evaluation_seconds: float,
    now: float,
) -> Estimate | None:
    """From the lines of metrics.jsonl; None before the first. `now` in Unix seconds, as the lines' `time`."""
    if not updates:
        return None
    seconds = [sum(update["seconds"].values()) for update in updates]
    recent = seconds[-_RECENT_UPDATES:]
    each = sum(recent) / len(recent)
    done = updates[-1]["version"]
    left = max_updates - done
    if max_seconds is not None:
        left = min(left, int((max_seconds - sum(seconds)) / each))
    left = max(0, left)
    since_last = now - updates[-1]["time"]
    return Estimate(max(0.0, left * each - since_last) + evaluation_seconds, done + left)
