"""Rollouts by a Hugging Face model in this process: a thread that decodes, behind the asynchronous engine interface.

All state of the model belongs to the thread; coroutines hand it commands and get completions back through their event
loop. The thread's turn: carry out commands (cancel, load, stop), take up waiting samples while rows are free, decode
one token. Waiting samples are only lists of ids: what bounds them is how many requests the caller keeps open.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import torch

from schemas.base import PolicyVersion
from streams.rollout.engines.base import (
    Completion,
    Engine,
    EngineError,
    FinishReason,
    ModelRefused,
    PromptRefused,
    PromptTooLong,
    SampleRequest,
)
from streams.rollout.engines.chat import Chat
from streams.rollout.engines.decoding import Decoder, Decoding

_Deliver = Callable[[Completion | EngineError], None]


@dataclass
class _Waiting:
    """Samples of one request that have no row yet."""

    request: SampleRequest
    sample_indices: deque[int]
    max_new_tokens: int
    deliver: _Deliver


class TransformersEngine(Engine):
    """Samples with a model directory on `device` ("cpu", "cuda", …) in `dtype`.

    `max_batch` bounds the sequences decoded at once. `num_threads` is torch's intra-op thread count (for the whole
    process); None leaves it. `chat_template` goes before the tokenizer's own. `incarnation` and `version` say whose
    weights the directory holds.
    """

    def __init__(
        self,
        directory: Path,
        *,
        device: str,
        dtype: torch.dtype,
        max_batch: int,
        seed: int,
        num_threads: int | None = None,
        chat_template: str | None = None,
        incarnation: int = 0,
        version: int = 0,
    ) -> None:
        if max_batch < 1:
            raise ValueError(f"max_batch must be at least 1, not {max_batch}")
        self._directory, self._device, self._dtype = directory, device, dtype
        self._max_batch, self._seed, self._num_threads = max_batch, seed, num_threads
        self._version = PolicyVersion(incarnation, version)
        self._chat_template = chat_template
        self._max_context_tokens = self._vocabulary = 0
        self._chat: Chat | None = None
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        # Guarded by `_changed`:
        self._commands: deque[tuple[Callable[[Decoder], None], Future[None]]] = deque()
        self._waiting: deque[_Waiting] = deque()
        self._stopping = False
        self._ended: EngineError | None = EngineError("the engine has not been started")
        # Why nothing more is taken; None while the thread runs.
        # The thread's own (`running_rows` looks at it):
        self._decoder: Decoder | None = None
        self._deliver: dict[int, _Deliver] = {}

    async def start(self) -> None:
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="sampling", daemon=True)
        self._thread.start()
        await asyncio.wrap_future(ready)
        with self._changed:
            self._ended = None

    async def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    @property
    def version(self) -> PolicyVersion:
        return self._version

    @property
    def max_context_tokens(self) -> int:
        return self._max_context_tokens

    def running_rows(self) -> list[Decoding]:
        """The sequences being decoded now: to look at, not to change."""
        return [] if self._decoder is None else list(self._decoder.rows)

    def render(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        if self._chat is None:
            raise EngineError("the engine has not been started")
        return self._chat.render(messages)

    async def sample(self, request: SampleRequest) -> AsyncIterator[Completion]:
        room = self._max_context_tokens - len(request.prompt_token_ids)
        if room < 1 or not request.prompt_token_ids:
            raise PromptTooLong(
                f"group {request.group_id}: a prompt of {len(request.prompt_token_ids)} tokens; the model's context is "
                f"{self._max_context_tokens}, and both prompt and answer need at least one"
            )
        if outside := [token for token in request.prompt_token_ids if not 0 <= token < self._vocabulary]:
            raise PromptRefused(
                f"token {outside[0]} of the prompt is outside the model's embedding of {self._vocabulary} rows"
            )
        loop = asyncio.get_running_loop()
        finished: asyncio.Queue[Completion | EngineError] = asyncio.Queue()

        def deliver(item: Completion | EngineError) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(finished.put_nowait, item)

        indices, limit = deque(request.sample_indices), min(request.max_new_tokens, room)
        with self._changed:
            if self._ended is not None:
                raise self._ended
            self._waiting.append(_Waiting(request, indices, limit, deliver))
            self._changed.notify()
        missing = len(request.sample_indices)
        try:
            while missing:
                item = await finished.get()
                if isinstance(item, EngineError):
                    raise item
                missing -= 1
                yield item
        finally:
            if missing:
                self._command(lambda decoder: self._cancel_all(decoder, lambda _, to: to is deliver))

    async def cancel(self, group_id: str) -> None:
        self._command(lambda decoder: self._cancel_all(decoder, lambda group, _: group == group_id))

    async def load(self, directory: Path, incarnation: int, version: int) -> None:
        def load(decoder: Decoder) -> None:
            decoder.load(directory, PolicyVersion(incarnation, version))
            self._version = decoder.version

        await asyncio.wrap_future(self._command(load))

    def _command(self, command: Callable[[Decoder], None]) -> Future[None]:
        """Have the thread carry out `command` before its next token; the future ends with it."""
        done: Future[None] = Future()
        with self._changed:
            if self._ended is not None:
                done.set_exception(self._ended)
            else:
                self._commands.append((command, done))
                self._changed.notify()
        return done

    # What follows runs in the sampling thread.

    def _run(self, ready: Future[None]) -> None:
        try:
            if self._num_threads is not None:
                torch.set_num_threads(self._num_threads)
            self._decoder = decoder = Decoder(
                self._directory,
                max_batch=self._max_batch,
                device=self._device,
                dtype=self._dtype,
                seed=self._seed,
                version=self._version,
                chat_template=self._chat_template,
            )
            self._chat, self._vocabulary = decoder.chat, decoder.vocabulary
            self._max_context_tokens = decoder.max_context_tokens
        except ModelRefused as error:
            ready.set_exception(error)
            return
        except Exception as error:  # noqa: BLE001 (of many libraries; all mean the same)
            ready.set_exception(EngineError(f"cannot load a model from {self._directory}: {error}"))
            return
        ready.set_result(None)
        try:
            while self._turn(decoder):
                pass
        except Exception as error:  # whatever it was, everyone who waits must hear of it
            self._end_all(EngineError(f"sampling failed: {type(error).__name__}: {error}"))
            raise
        self._end_all(EngineError("the engine was stopped"))

    def _turn(self, decoder: Decoder) -> bool:
        """Commands, new rows, one token. False once stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._commands or self._waiting or decoder.rows)
            commands = list(self._commands)
            self._commands.clear()
            stopping = self._stopping
        for command, done in commands:
            try:
                command(decoder)
            except ValueError as error:
                done.set_exception(error)
            else:
                done.set_result(None)
        if stopping:
            self._cancel_all(decoder, lambda _group, _to: True)
            return False
        self._take_up(decoder)
        if decoder.rows:
            for row in decoder.step():
                self._end(row, "stop" if decoder.stopped(row) else "length")
        return True

    def _take_up(self, decoder: Decoder) -> None:
        while free := decoder.max_batch - len(decoder.rows):
            with self._changed:
                if not self._waiting:
                    return
                first = self._waiting[0]
                count = min(free, len(first.sample_indices))
                indices = [first.sample_indices.popleft() for _ in range(count)]
                if not first.sample_indices:
                    self._waiting.popleft()
            request = first.request
            rows = [
                Decoding(
                    request.group_id,
                    index,
                    request.prompt_token_ids,
                    request.temperature,
                    first.max_new_tokens,
                    request.stop,
                )
                for index in indices
            ]
            for row in rows:
                self._deliver[id(row)] = first.deliver
            if rows:
                decoder.add(rows)

    def _cancel_all(self, decoder: Decoder, chosen: Callable[[str, _Deliver], bool]) -> None:
        """End the chosen rows and waiting samples, by their group and by where they are delivered."""
        with self._changed:
            dropped = [waiting for waiting in self._waiting if chosen(waiting.request.group_id, waiting.deliver)]
            self._waiting = deque(waiting for waiting in self._waiting if waiting not in dropped)
        for row in [row for row in decoder.rows if chosen(row.group_id, self._deliver[id(row)])]:
            decoder.remove(row)
            self._end(row, "cancelled")
        for waiting in dropped:
            for index in waiting.sample_indices:
                waiting.deliver(Completion(waiting.request.group_id, index, [], "", "cancelled"))

    def _end(self, row: Decoding, finish_reason: FinishReason) -> None:
        assert self._chat is not None
        text = self._chat.tokenizer.decode(row.token_ids, skip_special_tokens=True)
        self._deliver.pop(id(row))(Completion(row.group_id, row.sample_index, row.spans(), text, finish_reason))

    def _end_all(self, error: EngineError) -> None:
        """Take nothing more, and tell everyone who still waits why."""
        with self._changed:
            self._ended = error
            waiting, commands = list(self._waiting), list(self._commands)
            self._waiting.clear()
            self._commands.clear()
        for deliver in {*self._deliver.values(), *(one.deliver for one in waiting)}:
            deliver(error)
        for _, done in commands:
            done.set_exception(error)
