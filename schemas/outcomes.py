"""How things end: a sample that gets no reward, a group, a run. Types, so that no reason is ever read out of a text.

A sample's `Unscorable` is made where it failed and travels down the path. What people write (an external grader's
`fault`) is its `detail`, never its reason: a grader that says `deadline: …` decides nothing about how a group counts.
"""

from enum import StrEnum
from typing import Self

import msgspec

from schemas.base import Event


class DropReason(StrEnum):
    """Why a group was not trained on (invariant 3)."""

    TOO_LONG = "too_long"
    DEADLINE = "deadline"
    BELOW_MINIMUM = "below_minimum"
    STALE = "stale"
    CANCELLED = "cancelled"
    ZERO_SPREAD = "zero_spread"
    STEP_SKIPPED = "step_skipped"
    POISONED = "poisoned"
    RUN_ENDED = "run_ended"


class Outcome(StrEnum):
    """How a train group ended, as the ledger has it: in an update, or dropped."""

    TRAINED = "trained"
    TOO_LONG = DropReason.TOO_LONG
    DEADLINE = DropReason.DEADLINE
    BELOW_MINIMUM = DropReason.BELOW_MINIMUM
    STALE = DropReason.STALE
    CANCELLED = DropReason.CANCELLED
    ZERO_SPREAD = DropReason.ZERO_SPREAD
    STEP_SKIPPED = DropReason.STEP_SKIPPED
    POISONED = DropReason.POISONED
    RUN_ENDED = DropReason.RUN_ENDED


class DrainReason(StrEnum):
    """Why the scheduler admits no more."""

    RUN_ENDED = "run_ended"
    """`max_updates` is reached."""
    SOURCES_ENDED = "sources_ended"
    """Every task source has published all it has."""


class UnscorableReason(StrEnum):
    """Why a sample has no reward."""

    TOO_LONG = "too_long"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    RUN_ENDED = "run_ended"
    POISONED = "poisoned"
    VERSION_GONE = "version_gone"
    """Its group asks for a policy version that can be had no more."""
    SAMPLING_FAILED = "sampling_failed"
    GRADER_FAULT = "grader_fault"
    """It could not be graded (invariant 7)."""
    OTHER = "other"
    """Told in words alone, or a reason of another release."""

    @classmethod
    def _missing_(cls, value: object) -> "UnscorableReason":
        return cls.OTHER


class Unscorable(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why there is no reward: one of our reasons, and words for people."""

    reason: UnscorableReason
    detail: str = ""

    def __str__(self) -> str:
        """In words. Those of others stand alone."""
        if self.detail and self.reason in (UnscorableReason.GRADER_FAULT, UnscorableReason.OTHER):
            return self.detail
        return f"{self.reason}: {self.detail}" if self.detail else self.reason.value

    @property
    def drop_reason(self) -> DropReason:
        """How a group ends that has too few rewards because of this alone."""
        word = self.reason.value
        return DropReason(word) if word in DropReason else DropReason.BELOW_MINIMUM


class MayBeUnscorable(Event, frozen=True, kw_only=True):
    """An event of one sample, which may have failed.

    In JSON the reason is `failure`. A second field has the same in words: all that version 1 of the contract had at
    first, and what graders of the user's write. `tell_both_ways` keeps the two in step.
    """

    unscorable: Unscorable | None = msgspec.field(default=None, name="failure")

    def in_words(self) -> Self:
        """The event as anybody may have written it: with words, and no reason of ours."""
        return msgspec.structs.replace(self, unscorable=None) if self.unscorable else self


def tell_both_ways(
    told: msgspec.Struct, unscorable: Unscorable | None, words_field: str, words_alone: UnscorableReason
) -> None:
    """For `__post_init__`: words from the reason, or, where there are words alone, a reason that says so."""
    words: str | None = getattr(told, words_field)
    if unscorable is None and words is not None:
        msgspec.structs.force_setattr(told, "unscorable", Unscorable(words_alone, words))
    elif unscorable is not None and words is None:
        msgspec.structs.force_setattr(told, words_field, str(unscorable))
