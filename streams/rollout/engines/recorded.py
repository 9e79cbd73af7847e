"""Answers from a file instead of a model: for tests and demonstrations of the stream. Needs no torch.

The file is JSON lines, `{"prompt": TEXT, "answers": [TEXT, …]}`: the prompt as `render` writes it, or its last message
alone; `"prompt": null` answers every prompt that has no line of its own. Sample i of a prompt gets answer i, cycling.
Tokens are UTF-8 bytes, and every log-prob is 0.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import msgspec

from schemas.base import PolicyVersion
from streams.rollout.engines.base import (
    Completion,
    Engine,
    EngineError,
    PromptRefused,
    PromptTooLong,
    SampleRequest,
    Span,
)

_TURN_END = 0
"""The token id that ends a turn; no text holds it."""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    prompt: str | None
    answers: list[str]


class RecordedEngine(Engine):
    """Answers from `file`, each after `delay_seconds`."""

    def __init__(
        self,
        file: Path,
        *,
        delay_seconds: float = 0.0,
        max_context_tokens: int = 1 << 16,
        incarnation: int = 0,
        version: int = 0,
    ) -> None:
        self._file, self._delay_seconds, self._max_context_tokens = file, delay_seconds, max_context_tokens
        self._version = PolicyVersion(incarnation, version)
        self._answers: dict[bytes | None, list[str]] = {}
        self._cancelled: dict[str, list[asyncio.Event]] = {}

    async def start(self) -> None:
        for number, line in enumerate(self._file.read_bytes().splitlines(), start=1):
            if not line.strip():
                continue
            try:
                record = msgspec.json.decode(line, type=_Line)
            except msgspec.DecodeError as error:
                raise EngineError(f"{self._file}:{number}: {error}") from error
            if not record.answers:
                raise EngineError(f"{self._file}:{number}: `answers` is empty")
            self._answers[None if record.prompt is None else _digest(record.prompt.encode())] = record.answers

    async def stop(self) -> None:
        for group_id in list(self._cancelled):
            await self.cancel(group_id)

    @property
    def version(self) -> PolicyVersion:
        return self._version

    @property
    def max_context_tokens(self) -> int:
        return self._max_context_tokens

    def render(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return list("\0".join(message["content"] for message in messages).encode())

    async def sample(self, request: SampleRequest) -> AsyncIterator[Completion]:
        try:
            prompt = bytes(request.prompt_token_ids)
        except ValueError as error:
            raise PromptRefused(f"a token of the prompt is no byte: {error}") from error
        if not prompt or len(prompt) >= self._max_context_tokens:
            raise PromptTooLong(f"a prompt of {len(prompt)} tokens; the context is {self._max_context_tokens}")
        answers = self._answers_to(prompt)
        cancelled = asyncio.Event()
        self._cancelled.setdefault(request.group_id, []).append(cancelled)
        try:
            for index in request.sample_indices:
                await self._wait(cancelled)
                if cancelled.is_set():
                    yield Completion(request.group_id, index, [], "", "cancelled")
                    continue
                text = answers[index % len(answers)]
                token_ids = [*text.encode(), _TURN_END]
                reason = "stop" if len(token_ids) <= request.max_new_tokens else "length"
                token_ids = token_ids[: request.max_new_tokens]
                text = bytes(token for token in token_ids if token != _TURN_END).decode(errors="ignore")
                span = Span(token_ids, [0.0] * len(token_ids), *self._version)
                yield Completion(request.group_id, index, [span], text, reason)
        finally:
            self._cancelled[request.group_id].remove(cancelled)
            if not self._cancelled[request.group_id]:
                del self._cancelled[request.group_id]

    async def cancel(self, group_id: str) -> None:
        for event in self._cancelled.get(group_id, []):
            event.set()

    async def load(self, directory: Path, incarnation: int, version: int) -> None:
        """Take on the version; there are no weights to change."""
        self._version = PolicyVersion(incarnation, version)

    def _answers_to(self, prompt: bytes) -> list[str]:
        for key in (_digest(prompt), _digest(prompt.rsplit(b"\0", 1)[-1]), None):
            if key in self._answers:
                return self._answers[key]
        raise EngineError(f"no recorded answer to {prompt.decode(errors='replace')!r} in {self._file}")

    async def _wait(self, cancelled: asyncio.Event) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(cancelled.wait(), self._delay_seconds)


def _digest(prompt: bytes) -> bytes:
    return hashlib.blake2b(prompt, digest_size=16).digest()
