"""How a group ended."""

from enum import StrEnum

import msgspec

from schemas.base import Event, SourcePosition
from schemas.rollouts import FinishReason, TokenSpan


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


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rollout with its reward. `reward` None: unscorable, out of every baseline."""

    sample_index: int
    digest: str
    spans: tuple[TokenSpan, ...] = ()
    finish_reason: FinishReason = FinishReason.STOP
    reward: float | None = None
    components: dict[str, float] = {}
    unscorable: str | None = None
    verdict: str | None = None
    text: str = ""
    feedback: str = ""


class Trajectory(Event, frozen=True, kw_only=True, tag="trajectory"):
    """A group ready to train on (on `trajectories`) or to be counted (on `evaluations`)."""

    group_id: str
    log_id: str
    admission_number: int | None = None
    domain: str
    prompt_id: str
    epoch: int = 0
    num_samples: int
    temperature: float = 1.0
    members: tuple[Member, ...]
    admitted_at: float = 0.0
    source: SourcePosition | None = None
    prompt_text: str = ""
    """Evaluation groups: the last user message, for people."""


class GroupDropped(Event, frozen=True, kw_only=True, tag="group_dropped"):
    """A group that ended without training."""

    group_id: str
    log_id: str
    admission_number: int | None = None
    domain: str
    prompt_id: str = ""
    epoch: int = 0
    reason: DropReason
    detail: str = ""
    mean_reward: float | None = None
    """Mean of the scorable rewards, where there are any: dropped groups still show in the curves."""
    source: SourcePosition | None = None
