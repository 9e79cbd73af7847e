"""Batched decoding with a Hugging Face causal model: rows that come and go, and weights that change between two tokens.

A *row* is one sequence that is being sampled. Its key-value cache holds every token but the newest, so a decode step is
the same for all rows whatever their length: feed the newest token, write its keys and values behind the row's others,
draw the next. Rows of a group share their prompt: it is run through the model once and its cache copied to each row.

Left out: top-p and top-k (they break the importance ratio), paged caches, prefix reuse between groups.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import Cache, DynamicLayer

from schemas.base import PolicyVersion
from streams.rollout.engines.base import ModelRefused, Span
from streams.rollout.engines.chat import Chat, ends_of_text
from streams.rollout.engines.model import as_mask, load_model, max_context_tokens, read_weights, stored_in_float32

log = logging.getLogger(__name__)

PARITY_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25}
"""Nats, the mean over a few tokens: between decoding and the model's own forward pass (bfloat16 keeps 8 bits)."""
_GROWTH_TOKENS = 64
_STOP_WINDOW_TOKENS = 16
"""Stop texts are looked for in this many newest tokens: enough, for a row is looked at after every token."""


@dataclass(eq=False)
class Decoding:
    """One sequence: its prompt, and what has been sampled so far."""

    group_id: str
    sample_index: int
    prompt: list[int]
    temperature: float
    max_new_tokens: int
    stop: tuple[str, ...] = ()
    token_ids: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    versions: list[PolicyVersion] = field(default_factory=list[PolicyVersion])
    """Of each token: the policy that sampled it."""

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.token_ids)

    @property
    def newest(self) -> int:
        return self.token_ids[-1] if self.token_ids else self.prompt[-1]

    def spans(self) -> list[Span]:
        """The sampled tokens, cut where the version changes."""
        cuts = [i for i, version in enumerate(self.versions) if i == 0 or version != self.versions[i - 1]]
        return [
            Span(self.token_ids[start:end], self.logprobs[start:end], *self.versions[start])
            for start, end in zip(cuts, [*cuts[1:], len(self.versions)], strict=True)
        ]


class _RowCache(Cache):
    """Keys and values by layer, [max rows, heads, tokens, head dimension]; row i is filled from 0 to its own length."""

    def __init__(self, max_rows: int) -> None:
        super().__init__(layers=[])
        self._max_rows = max_rows
        self._stores: list[tuple[Tensor, Tensor]] = []
        self._rows = self._positions = torch.empty(0, dtype=torch.long)
        self._end = 0

    def begin_step(self, positions: Tensor) -> None:
        """In the next forward pass row i (of as many as there are `positions`) writes at `positions[i]`."""
        self._rows = torch.arange(len(positions), device=positions.device)
        self._positions = positions
        self._end = int(positions.max()) + 1

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        keys, values = self._reserved(layer_idx, key_states, value_states, self._end)
        keys[self._rows, :, self._positions] = key_states[:, :, 0]
        values[self._rows, :, self._positions] = value_states[:, :, 0]
        return keys[: len(self._rows), :, : self._end], values[: len(self._rows), :, : self._end]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._end

    def copy_in(self, row: int, start: int, source: DynamicCache, tokens: slice) -> None:
        """Copy `tokens` of a cache of one sequence to `row`, from its token `start` on."""
        end = start + tokens.stop - tokens.start
        for layer, filled in enumerate(source.layers):
            assert isinstance(filled, DynamicLayer)
            assert filled.keys is not None
            assert filled.values is not None
            keys, values = self._reserved(layer, filled.keys, filled.values, end)
            keys[row, :, start:end] = filled.keys[0, :, tokens]
            values[row, :, start:end] = filled.values[0, :, tokens]

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of row `source` over row `target`."""
        for store in self._stores:
            for tensor in store:
                tensor[target, :, :length] = tensor[source, :, :length]

    def _reserved(self, layer: int, keys_like: Tensor, values_like: Tensor, tokens: int) -> tuple[Tensor, Tensor]:
        """The layer's keys and values, made or grown to hold `tokens` tokens a row."""
        old = self._stores[layer] if layer < len(self._stores) else None
        if old is not None and old[0].shape[2] >= tokens:
            return old
        new = tuple(
            like.new_zeros((self._max_rows, like.shape[1], tokens + _GROWTH_TOKENS, like.shape[3]))
            for like in (keys_like, values_like)
        )
        if old is None:
            self._stores.append((new[0], new[1]))
        else:
            for fresh, tensor in zip(new, old, strict=True):
                fresh[:, :, : tensor.shape[2]] = tensor
            self._stores[layer] = (new[0], new[1])
        return self._stores[layer]


class Decoder:
    """A model, the rows that it is sampling, and the version of its weights. Belongs to one thread."""

    def __init__(
        self,
        directory: Path,
        *,
        max_batch: int,
        device: str,
        dtype: torch.dtype,
        seed: int,
        version: PolicyVersion,
        chat_template: str | None = None,
    ) -> None:
        """`chat_template` goes before the tokenizer's own. Raises ModelRefused."""
        self.chat = Chat.of(directory, chat_template)
        self.tokenizer: Any = self.chat.tokenizer
        self.model, self._ignored = load_model(directory, dtype)
        self.model.to(device).eval().requires_grad_(False)
        self.max_batch = max_batch
        self.vocabulary = int(self.model.get_input_embeddings().weight.shape[0])
        self.chat.check(self.vocabulary)
        self.eos_ids = ends_of_text(self.model, self.chat, self.vocabulary)
        self.max_context_tokens = max_context_tokens(self.model.config)
        self.version = version
        self._rounds = False
        """It has been said that this model is coarser than the weights that it is given."""
        self.rows: list[Decoding] = []
        self._device = torch.device(device)
        self._cache = _RowCache(max_batch)
        self._generator = torch.Generator(device).manual_seed(seed)
        self._check()
        self._generator.manual_seed(seed)

    @torch.no_grad()
    def add(self, rows: Sequence[Decoding]) -> None:
        """Take up new rows of one group (same prompt). Never more than `max_batch` in all."""
        assert rows
        assert len(self.rows) + len(rows) <= self.max_batch
        self.rows += rows
        self._fill(range(len(self.rows) - len(rows), len(self.rows)))

    def remove(self, row: Decoding) -> None:
        """Give up a row: the last one takes its place."""
        index, last = self.rows.index(row), len(self.rows) - 1
        moved = self.rows.pop()
        if index != last:
            self._cache.move(last, index, moved.length - 1)
            self.rows[index] = moved

    @torch.no_grad()
    def step(self) -> list[Decoding]:
        """Sample one token for every row; return (and remove) the rows that it finished."""
        positions = torch.tensor([row.length - 1 for row in self.rows], device=self._device)
        newest = torch.tensor([row.newest for row in self.rows], device=self._device)
        self._cache.begin_step(positions)
        visible = torch.arange(int(positions.max()) + 1, device=self._device) <= positions[:, None]
        logits = self.model(
            input_ids=newest[:, None],
            position_ids=positions[:, None],
            attention_mask=as_mask(visible[:, None, None, :], self.model),
            past_key_values=self._cache,
            use_cache=True,
        ).logits[:, -1]
        temperatures = torch.tensor([row.temperature for row in self.rows], device=self._device)
        token_ids, logprobs = draw(logits, temperatures, self._generator)
        for row, token_id, logprob in zip(self.rows, token_ids.tolist(), logprobs.tolist(), strict=True):
            row.token_ids.append(token_id)
            row.logprobs.append(logprob)
            row.versions.append(self.version)
        finished = [row for row in self.rows if self.stopped(row) or len(row.token_ids) >= row.max_new_tokens]
        for row in finished:
            self.remove(row)
        return finished

    def stopped(self, row: Decoding) -> bool:
        """Whether the row's newest token ends a turn or a text, or completes one of its stop texts."""
        if row.token_ids[-1] in self.eos_ids:
            return True
        if not row.stop:
            return False
        tail = self.tokenizer.decode(row.token_ids[-_STOP_WINDOW_TOKENS:])
        return any(stop in tail for stop in row.stop)

    @torch.no_grad()
    def load(self, directory: Path, version: PolicyVersion) -> None:
        """Overwrite every weight in place, compute the rows' caches again, then take on `version`.

        The directory is read as a whole before the first weight changes: one that does not fit changes nothing
        (ValueError).
        """
        targets: dict[str, Tensor] = self.model.state_dict()
        weights = read_weights(directory, self.model, self._ignored)
        if self.model.dtype != torch.float32 and stored_in_float32(directory) and not self._rounds:
            self._rounds = True
            log.warning("weights come in float32 and are sampled with in %s: small steps are lost", self.model.dtype)
        for name, weight in weights.items():
            targets[name].copy_(weight)
        self.version = version
        groups: dict[str, list[int]] = {}
        for index, row in enumerate(self.rows):
            groups.setdefault(row.group_id, []).append(index)
        for indices in groups.values():
            self._fill(indices)

    def _fill(self, indices: Sequence[int]) -> None:
        """Compute the cache of rows of one group, all sampled tokens but the newest, in one forward pass.

        The prompt stands once, followed by each row's sampled tokens; a mask lets a sampled token see the prompt and
        its own row only, and positions count from the row's own beginning.
        """
        shared = self.rows[indices[0]].prompt
        tails = [self.rows[index].token_ids[:-1] for index in indices]
        packed = [*shared, *(token for tail in tails for token in tail)]
        owner = torch.tensor(
            [-1] * len(shared) + [i for i, tail in enumerate(tails) for _ in tail], device=self._device
        )
        positions = torch.tensor(
            [*range(len(shared)), *(len(shared) + i for tail in tails for i in range(len(tail)))], device=self._device
        )
        order = torch.arange(len(packed), device=self._device)
        visible = (order[None, :] <= order[:, None]) & ((owner[None, :] == -1) | (owner[None, :] == owner[:, None]))
        cache = DynamicCache()
        self.model.base_model(
            input_ids=torch.tensor([packed], device=self._device),
            position_ids=positions[None],
            attention_mask=as_mask(visible[None, None], self.model),
            past_key_values=cache,
            use_cache=True,
        )
        start = len(shared)
        for index, tail in zip(indices, tails, strict=True):
            self._cache.copy_in(index, 0, cache, slice(0, len(shared)))
            self._cache.copy_in(index, len(shared), cache, slice(start, start + len(tail)))
            start += len(tail)

    @torch.no_grad()
    def _check(self) -> None:
        """Decode a few tokens and compare with the model's own forward pass. Raises ModelRefused where they differ.

        Not every architecture takes masks, positions and a cache from outside; what ignores them is nats away.
        """
        name = type(self.model).__name__
        prompt = [(number * 7 + 1) % self.vocabulary for number in range(4)]
        rows = [Decoding("", index, prompt, temperature=1.0, max_new_tokens=4 + index) for index in range(2)]
        rows = rows[: self.max_batch]
        try:
            self.add(rows)
            self.step()
            if self.rows:
                self._fill(range(len(self.rows)))
            while self.rows:
                self.step()
            differences = [self._difference(row) for row in rows]
        except Exception as error:
            raise ModelRefused(
                f"{name} cannot be sampled with here: it takes no attention mask, positions and key-value cache from "
                f"outside, as batches of answers of many lengths need ({type(error).__name__}: {error})"
            ) from error
        worst = max(differences)
        if not worst <= PARITY_TOLERANCE[self.model.dtype]:
            raise ModelRefused(
                f"{name} cannot be sampled with here: log-probs of decoded tokens differ from the model's own by "
                f"{worst:.3g} nats (its weights are not finite, or it ignores attention masks or positions)"
            )

    def _difference(self, row: Decoding) -> float:
        """Mean |log-prob − the model's own|, nats."""
        tokens = torch.tensor([row.prompt + row.token_ids], device=self._device)
        own = self.model(input_ids=tokens, use_cache=False).logits[0, len(row.prompt) - 1 : -1].float().log_softmax(-1)
        own = own.gather(1, tokens[0, len(row.prompt) :, None])[:, 0]
        return float((own - torch.tensor(row.logprobs, device=self._device)).abs().mean())


def draw(logits: Tensor, temperatures: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw a token a row from logits [rows, vocabulary]: ids [rows] and their float32 log-probs [rows].

    Temperature 0 takes the likeliest token and gives its log-prob at temperature 1. A draw is the inverse of the
    cumulated distribution: a tenth of the time of `multinomial` on a CPU, which draws noise for every entry.
    """
    greedy = temperatures == 0
    logits = logits.float()
    # the largest goes first: divided by a tiny temperature it would be infinite
    shifted = (logits - logits.amax(dim=-1, keepdim=True)) / torch.where(greedy, 1.0, temperatures)[:, None]
    cumulated = shifted.exp().cumsum_(dim=-1)
    total = cumulated[:, -1:]
    if not torch.isfinite(total).all():
        raise FloatingPointError("the model's logits are not finite")
    uniform = torch.rand(total.shape, generator=generator, device=logits.device)
    token_ids = torch.searchsorted(cumulated, uniform * total, right=True).clamp_(max=logits.shape[1] - 1)
    if greedy.any():
        token_ids = torch.where(greedy[:, None], shifted.argmax(dim=-1, keepdim=True), token_ids)
    return token_ids[:, 0], (shifted.gather(1, token_ids) - total.log())[:, 0]
