"""The learner's cumulative state, for the scheduler and for people."""

import msgspec

from schemas.base import Event, PolicyVersion


class SourceProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Which indices of a task source have ended: all below `low`, and `above`."""

    low: int = 0
    above: tuple[int, ...] = ()


class Progress(Event, frozen=True, kw_only=True, tag="progress"):
    """Cumulative: the newest of the highest incarnation is all a reader needs."""

    log_id: str
    incarnation: int
    version: int
    weights: PolicyVersion | None = None
    """The newest version published on `weights`: its event went before this one."""
    ended_low: int = 0
    """Every admission number below has ended."""
    ended_above: tuple[int, ...] = ()
    outcomes: dict[str, int] = {}
    """Ended train groups by outcome: `trained` or a `DropReason`."""
    sources: dict[str, SourceProgress] = {}
    closing: bool = False
    """max_updates is reached: admit no more."""
    finished: bool = False
    """The learner has stopped for good; nothing more comes."""
    updated_at: float = 0.0


class LogIdentity(Event, frozen=True, kw_only=True, tag="log_identity"):
    """Written once by `topics apply`: which log this is. Key `log-id` in `progress`."""

    log_id: str
    created_at: float
