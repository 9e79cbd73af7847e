"""What people write to `prompts.<domain>`: tasks to try."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from schemas.base import Event, SourcePosition, UserStruct
from schemas.graders import Grader, PositiveInt

Domain = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class Message(UserStruct, frozen=True, kw_only=True):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


class Sampling(UserStruct, frozen=True, kw_only=True):
    """How answers are drawn. Only temperature: top-p and top-k break the importance ratio."""

    temperature: Annotated[float, Meta(ge=0, le=4)] = 1.0
    """0 is greedy."""
    max_new_tokens: PositiveInt = 256
    stop: tuple[str, ...] = ()
    """An answer also ends with the token that completes one of these texts; the text stays in."""


class Prompt(Event, frozen=True, kw_only=True, tag="prompt", forbid_unknown_fields=True):
    """A task to try: `group_size` answers to `messages` (or `token_ids`), judged by `grader`."""

    id: str | None = None
    """Absent: made from topic, partition, offset and log id."""
    domain: Domain
    messages: tuple[Message, ...] = ()
    token_ids: tuple[int, ...] = ()
    """Exactly one of `messages` and `token_ids` is given."""
    grader: Grader
    group_size: Annotated[int, Meta(ge=1, le=1024)] = 8
    sampling: Sampling = Sampling()
    deadline_seconds: Annotated[float, Meta(gt=0)] = 3600.0
    """From admission to the group's end."""
    epoch: Annotated[int, Meta(ge=0)] = 0
    source: SourcePosition | None = None
    metadata: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if bool(self.messages) == bool(self.token_ids):
            raise ValueError("give exactly one of `messages` and `token_ids`")
        if self.purpose == "score":
            raise ValueError("a prompt's purpose is `train` or `evaluate`; publish answers to `rollouts` to score them")


class SourceEnd(Event, frozen=True, kw_only=True, tag="source_end", forbid_unknown_fields=True):
    """A task source has published everything: indices 0 … count-1, and no more will come."""

    source: str
    domain: Domain
    count: int


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rollout needs to know of its prompt to be judged."""

    prompt_id: str
    domain: str
    grader: Grader
    epoch: int = 0
    metadata: dict[str, Any] = {}
