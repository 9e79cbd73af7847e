"""Admitted work, written by the scheduler alone."""

from typing import Any

from schemas.base import Event, PolicyVersion, SourcePosition
from schemas.graders import Grader
from schemas.outcomes import DropReason
from schemas.prompts import Message, Sampling


class Generation(Event, frozen=True, kw_only=True, tag="generation"):
    """Sample `num_samples` answers to this prompt now."""

    group_id: str
    log_id: str
    admission_number: int | None = None
    """Train groups only: 0, 1, 2, … without gaps in one log."""
    prompt_id: str
    domain: str
    epoch: int = 0
    messages: tuple[Message, ...] = ()
    token_ids: tuple[int, ...] = ()
    grader: Grader
    num_samples: int
    min_samples: int = 1
    """A train group with fewer scorable members than this is dropped as `below_minimum`."""
    sampling: Sampling
    admitted_at: float
    """Unix seconds."""
    deadline_seconds: float
    prompt_topic: str
    prompt_partition: int
    prompt_offset: int
    rollouts_end_offset: int
    """End of this group's `rollouts` partition at admission: a takeover scans from here."""
    policy_version: PolicyVersion | None = None
    """Evaluation groups: the version to sample with; a worker waits for it and holds it."""
    least_policy_version: PolicyVersion | None = None
    """Train groups: the newest version at admission. A worker that is still loading it begins no sample with an
    older one, which would be stale before it is trained on."""
    source: SourcePosition | None = None
    metadata: dict[str, Any] = {}


class Cancel(Event, frozen=True, kw_only=True, tag="cancel"):
    """Stop sampling this group."""

    group_id: str
    reason: str
    """A `DropReason`; another release may know more of them."""
    admission_number: int | None = None

    @property
    def drop_reason(self) -> DropReason:
        """How the group ends."""
        return DropReason(self.reason) if self.reason in DropReason else DropReason.CANCELLED


class Drained(Event, frozen=True, kw_only=True, tag="drained"):
    """No train group after the `admitted` so far; one to every partition."""

    log_id: str
    admitted: int
    reason: str
    """A `DrainReason`."""
    incarnation: int = 0
    """`run_ended`: the learner's life that is closing. One that goes back behind its end is not meant."""
