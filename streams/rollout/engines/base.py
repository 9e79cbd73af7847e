"""The one interface behind which answers are sampled.

A request asks for some of the samples of one group; completions come back in the order in which they finish. A
completion is a list of spans, one per policy version that sampled it: an engine may change its weights between two
tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schemas.base import PolicyVersion

FinishReason = Literal["stop", "length", "cancelled"]


class EngineError(RuntimeError):
    """The engine cannot go on; nothing it holds will finish."""


class ModelRefused(EngineError):
    """This model, or these weights, cannot be sampled with, whatever is tried again; the message says why."""


class PromptRefused(ValueError):
    """This prompt cannot be answered by this model, others can; the message says why."""


class PromptTooLong(ValueError):
    """The prompt leaves no room for an answer in the model's context."""


@dataclass(frozen=True)
class SampleRequest:
    """Sample the answers `sample_indices` of one group."""

    group_id: str
    prompt_token_ids: list[int]
    sample_indices: list[int]
    temperature: float
    """0 is greedy."""
    max_new_tokens: int
    stop: tuple[str, ...] = ()
    """An answer also ends (finish reason `stop`) with the token that completes one of these texts; none is cut away."""


@dataclass(frozen=True)
class Span:
    """Tokens that one policy version sampled."""

    token_ids: list[int]
    logprobs: list[float]
    """Natural log-probabilities, float32, under softmax(logits / temperature); for greedy, at temperature 1."""
    incarnation: int
    version: int


@dataclass(frozen=True)
class Completion:
    """One sampled answer. The token that ended it (finish reason `stop`: an end-of-text token or a
    stop text) is the last token of its last span."""

    group_id: str
    sample_index: int
    spans: list[Span]
    text: str
    """For people and graders: decoded without special tokens."""
    finish_reason: FinishReason


class Engine(ABC):
    """Life: `start` → any number of `sample`, `cancel`, `load`, at the same time → `stop`."""

    @abstractmethod
    async def start(self) -> None:
        """Get ready to sample. Raises `EngineError` when the model cannot be had, `ModelRefused` among them."""

    @abstractmethod
    async def stop(self) -> None:
        """End everything that runs; open requests end with `cancelled` completions. Idempotent."""

    @property
    @abstractmethod
    def version(self) -> PolicyVersion:
        """The version whose every tensor is in place."""

    @property
    @abstractmethod
    def max_context_tokens(self) -> int:
        """The longest prompt and answer together."""

    @abstractmethod
    def render(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of `{"role", "content"}` messages under the chat template, ready for the assistant's answer.

        A last message of the assistant's is left open, to be continued. Raises `PromptRefused`.
        """

    @abstractmethod
    def sample(self, request: SampleRequest) -> AsyncIterator[Completion]:
        """Yield one completion per sample index, in the order in which they finish.

        Raises `PromptTooLong`, `PromptRefused`, or `EngineError` when the engine dies. Leaving the iterator early
        cancels the rest.
        """

    @abstractmethod
    async def cancel(self, group_id: str) -> None:
        """End the group's unfinished samples: each comes as a `cancelled` completion with the tokens it has."""

    @abstractmethod
    async def load(self, directory: Path, incarnation: int, version: int) -> None:
        """Go over to the weights of a Hugging Face directory, between two tokens of what is running.

        Running samples go on under the new weights, with a cache computed by them, and begin a new span. Returns once
        every tensor is in place. Raises `ValueError` and changes nothing when the directory does not fit the model.
        """
