"""From samples to micro-batches of padded rows.

The answers of one group share their prompt. A row therefore holds a prompt once and several answers behind it, each
seeing the prompt and itself only (a tree of depth one); with 16 answers of 40 tokens to a prompt of 100 that is a
third of the tokens. Rows end at `PACKED_ROW_TOKENS`: attention is over the whole row, so longer answers gain nothing,
and go one to a row, as a plain causal sequence.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from learner.training.samples import Sample

PACKED_ROW_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt and the answers behind it. All samples have the same first `prompt_tokens` tokens."""

    samples: tuple[Sample, ...]

    @property
    def prompt_tokens(self) -> int:
        return self.samples[0].prompt_tokens

    @property
    def tokens(self) -> int:
        """Of the row: the prompt, and each answer without its last token, which predicts nothing."""
        prompt = self.prompt_tokens
        return prompt + sum(len(sample.token_ids) - prompt - 1 for sample in self.samples)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Rows padded on the right to the longest, and the trainable tokens of all rows in one flat list.

    Only those are projected to logits: `rows` and `columns` say at which hidden state each is predicted.
    """

    input_ids: Tensor
    """[rows, columns] int64; 0 where padded."""
    position_ids: Tensor | None
    """[rows, columns] int64: every answer goes on from its prompt. None: 0, 1, 2, …"""
    attention_mask: Tensor | None
    """[rows, 1, columns, columns] bool, True: attended. None: causal; padding is to the right of all that counts."""
    rows: Tensor
    """[tokens] int64, as are the next two and the ages; the others are float32."""
    columns: Tensor
    token_ids: Tensor
    behaviour_logprobs: Tensor
    ages: Tensor
    """Updates since the weights that sampled each token."""
    advantages: Tensor
    temperatures: Tensor


def pack(samples: Sequence[Sample], max_tokens: int) -> list[Row]:
    """Rows of samples with the same prompt, as many as fit into `max_tokens`; one at least. 0: one sample a row."""
    by_prompt: dict[bytes, list[Sample]] = {}
    for sample in samples:
        prompt = sample.token_ids[: sample.prompt_tokens].tobytes()
        by_prompt.setdefault(prompt, []).append(sample)
    rows: list[Row] = []
    for alike in by_prompt.values():
        row = Row((alike[0],))
        for sample in alike[1:]:
            longer = Row((*row.samples, sample))
            if longer.tokens > max_tokens:
                rows.append(row)
                longer = Row((sample,))
            row = longer
        rows.append(row)
    return rows


def micro_batches(rows: Sequence[Row], max_tokens: Callable[[], int]) -> Iterator[list[Row]]:
    """Cut into parts of at most `max_tokens` padded tokens, similar lengths together, longest first.

    The bound is asked anew for each part. A row longer than that goes alone. The cut never changes the step: the loss
    has one denominator.
    """
    waiting = sorted(rows, key=lambda row: -row.tokens)
    while waiting:
        count = max(1, max_tokens() // waiting[0].tokens)
        yield waiting[:count]
        waiting = waiting[count:]


def collate(rows: Sequence[Row]) -> MicroBatch:
    """Tensors of one micro-batch, on the CPU."""
    width = max(row.tokens for row in rows)
    input_ids = np.zeros((len(rows), width), dtype=np.int64)
    positions = np.zeros((len(rows), width), dtype=np.int64)
    branch = np.full((len(rows), width), -1, dtype=np.int64)
    places: list[tuple[int, int, Sample]] = []
    for number, row in enumerate(rows):
        prompt = row.prompt_tokens
        input_ids[number, :prompt] = row.samples[0].token_ids[:prompt]
        positions[number, :prompt] = np.arange(prompt)
        branch[number, :prompt] = 0
        start = prompt
        for answer, sample in enumerate(row.samples, start=1):
            length = len(sample.token_ids) - prompt - 1
            end = start + length
            input_ids[number, start:end] = sample.token_ids[prompt:-1]
            positions[number, start:end] = np.arange(prompt, prompt + length)
            branch[number, start:end] = answer
            places.append((number, start, sample))
            start = end
    packed = any(len(row.samples) > 1 for row in rows)
    counts = torch.tensor([sample.trainable_tokens for _, _, sample in places])

    def a_token(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32).repeat_interleave(counts)

    samples = [sample for _, _, sample in places]
    token_ids = np.concatenate([sample.token_ids[sample.trainable] for sample in samples])
    logprobs = np.concatenate([sample.behaviour_logprobs[sample.trainable] for sample in samples])
    ages = np.concatenate([sample.ages[sample.trainable] for sample in samples])
    return MicroBatch(
        input_ids=torch.from_numpy(input_ids),
        position_ids=torch.from_numpy(positions) if packed else None,
        attention_mask=_tree_mask(torch.from_numpy(branch)) if packed else None,
        rows=torch.tensor([number for number, _, _ in places]).repeat_interleave(counts),
        columns=torch.from_numpy(np.concatenate([_predicting(sample, start) for _, start, sample in places])),
        token_ids=torch.from_numpy(token_ids.astype(np.int64)),
        behaviour_logprobs=torch.from_numpy(logprobs.astype(np.float32)),
        ages=torch.from_numpy(ages.astype(np.int64)),
        advantages=a_token([sample.advantage for sample in samples]),
        temperatures=a_token([sample.temperature for sample in samples]),
    )


def _predicting(sample: Sample, start: int) -> NDArray[np.int64]:
    """Columns of the hidden states before each trainable token: the prompt's last, then the answer's, from `start`."""
    prompt = sample.prompt_tokens
    before = np.flatnonzero(sample.trainable) - 1
    return np.where(before < prompt, before, before - prompt + start).astype(np.int64)


def _tree_mask(branch: Tensor) -> Tensor:
    """Attend to the earlier tokens of the prompt (branch 0) and of one's own answer. Padding (−1) sees the prompt."""
    columns = branch.shape[1]
    earlier = torch.ones(columns, columns, dtype=torch.bool).tril()
    same = branch.unsqueeze(2) == branch.unsqueeze(1)
    of_prompt = (branch == 0).unsqueeze(1)
    return (earlier & (same | of_prompt)).unsqueeze(1)
