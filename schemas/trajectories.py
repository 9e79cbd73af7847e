"""How a group ended."""

import msgspec

from schemas.base import Event, SourcePosition
from schemas.outcomes import DropReason, Unscorable, UnscorableReason, tell_both_ways
from schemas.rollouts import FinishReason, TokenSpan


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rollout with its reward. `reward` None: unscorable, out of every baseline."""

    sample_index: int
    digest: str
    spans: tuple[TokenSpan, ...] = ()
    finish_reason: FinishReason = FinishReason.STOP
    reward: float | None = None
    components: dict[str, float] = {}
    unscorable: Unscorable | None = msgspec.field(default=None, name="failure")
    unscorable_words: str | None = msgspec.field(default=None, name="unscorable")
    verdict: str | None = None
    text: str = ""
    feedback: str = ""

    def __post_init__(self) -> None:
        tell_both_ways(self, self.unscorable, "unscorable_words", UnscorableReason.OTHER)


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
