"""One grading job, and the context that follows a rollout from dispatch to its reward."""

import msgspec

from schemas.base import Event, PolicyVersion
from schemas.graders import Grader


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who a job, verdict or reward belongs to. Every grader copies it unchanged (invariant 2)."""

    group_id: str
    sample_index: int
    digest: str
    """The rollout's content digest: an execution of other tokens is another execution."""
    domain: str
    prompt_id: str
    epoch: int = 0
    generation_offset: int | None = None
    """Offset of the group's `Generation` in its partition; None for scored rollouts."""
    num_samples: int = 1
    policy_version: PolicyVersion | None = None
    """The oldest version among the rollout's sampled tokens."""
    completion_tokens: int = 0
    components: dict[str, float] = {}
    """Text components of the reward (format, repetition), computed where the text is."""
    attempt: int = 1
    """Rises only on an infrastructure retry."""


class Execution(Event, frozen=True, kw_only=True, tag="execution"):
    """Judge `program` with `grader`."""

    execution_id: str
    context: Context
    program: str
    grader: Grader
