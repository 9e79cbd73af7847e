"""One sampled answer. Tokens are carried from the engine to the loss unchanged (invariant 9)."""

from enum import StrEnum

import msgspec

from schemas.base import PolicyVersion, SourcePosition
from schemas.outcomes import MayBeUnscorable, UnscorableReason, tell_both_ways
from schemas.prompts import Task


class FinishReason(StrEnum):
    """Why sampling stopped, as the engine says."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"


class TokenSpan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run of tokens from one origin. In order, a rollout's spans are the whole sequence."""

    token_ids: bytes
    """Little-endian int32 (base64 in JSON)."""
    logprobs: bytes = b""
    """Little-endian float32, one a token, under the tempered distribution; empty where not sampled."""
    trainable: bool = False
    policy_version: PolicyVersion | None = None
    """The version that sampled it; None for prompt and observation tokens."""


class Rollout(MayBeUnscorable, frozen=True, kw_only=True, tag="rollout"):
    """One answer to one group's prompt, or (purpose `score`) an answer that a user brought."""

    rollout_id: str
    group_id: str
    sample_index: int = 0
    num_samples: int = 1
    task: Task
    spans: tuple[TokenSpan, ...] = ()
    text: str = ""
    """The decoded completion: for people and graders, never re-tokenised."""
    finish_reason: FinishReason = FinishReason.STOP
    digest: str = ""
    """`schemas.ids.rollout_digest` of spans and text."""
    generation_offset: int | None = None
    admission_number: int | None = None
    source: SourcePosition | None = None
    unscorable_words: str | None = msgspec.field(default=None, name="unscorable")
    """Like `unscorable`, set when no answer could be sampled."""
    attempt: int = 1

    def __post_init__(self) -> None:
        tell_both_ways(self, self.unscorable, "unscorable_words", UnscorableReason.OTHER)
