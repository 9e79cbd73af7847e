"""The policy as training sees it: a causal language model that gives log-probs of chosen tokens."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from learner.errors import UnsupportedModel
from learner.training.batch import MicroBatch, collate, pack
from learner.training.logits import project
from learner.training.samples import Sample

PARITY_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25}
"""Nats, mean over tokens. In bfloat16 a logit of 20 is rounded by up to 0.06 (SmolLM2: 0.05 on average); what must be
caught (a scaled or capped logit, an ignored mask) is nats away."""


class Policy(nn.Module):
    """Wraps a Hugging Face causal model. Its hidden states are cut to the wanted positions before the projection.

    On SmolLM2 (vocabulary 49,152) the projection is a fifth of the work, and prompts have most of the tokens.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        model.eval()  # also in training: a dropout would tear trained and sampled log-probs apart
        self.model: Any = model
        """A transformers model: typed in part only."""

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor | None,
        attention_mask: Tensor | None,
        rows: Tensor,
        columns: Tensor,
        token_ids: Tensor,
        temperatures: Tensor,
        *,
        whole: bool = False,
    ) -> tuple[Tensor, Tensor] | Tensor:
        """Log-prob and entropy (float32, [tokens]) of `token_ids`, each predicted at (row, column).

        `whole`: instead, the log-probs of all tokens there at temperature 1, [tokens, vocabulary].
        """
        decoder = self.model.get_decoder()
        hidden: Tensor = decoder(
            input_ids=input_ids, position_ids=position_ids, attention_mask=attention_mask, use_cache=False
        ).last_hidden_state
        wanted, weight = hidden[rows, columns], self.model.get_output_embeddings().weight
        if whole:
            return torch.nn.functional.linear(wanted, weight).float().log_softmax(-1)
        return project(wanted, weight, token_ids, temperatures)

    def of(self, batch: MicroBatch, device: torch.device) -> tuple[Tensor | None, ...]:
        """`forward`'s arguments on `device`."""
        wanted = (
            batch.input_ids,
            batch.position_ids,
            batch.attention_mask,
            batch.rows,
            batch.columns,
            batch.token_ids,
            batch.temperatures,
        )
        return tuple(None if tensor is None else tensor.to(device) for tensor in wanted)


def load_policy(directory: Path, dtype: torch.dtype, device: torch.device) -> Policy:
    """The policy of a Hugging Face directory."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    model: Any = AutoModelForCausalLM.from_pretrained(
        directory, dtype=dtype, attn_implementation="sdpa", local_files_only=True
    )
    return Policy(model.to(device))


@torch.no_grad()
def check_parity(policy: Policy, vocabulary: int) -> bool:
    """Compare with the model's own logits, sequence by sequence; return whether prompts may be shared.

    A model that ignores masks or positions given from outside gets a row for each sample instead. Raises
    UnsupportedModel when even then its log-probs differ. The model is on one device, whole.
    """
    parameter = next(policy.parameters())
    samples = parity_samples(vocabulary)
    expected = torch.cat([_own_logprobs(policy.model, sample, parameter.device) for sample in samples])
    tolerance = PARITY_TOLERANCE[parameter.dtype]

    def difference(max_row_tokens: int) -> float:
        logp, _ = policy(*policy.of(collate(pack(samples, max_row_tokens)), parameter.device))
        return float((logp - expected).abs().mean())

    alone = difference(0)
    if not alone <= tolerance:
        raise UnsupportedModel(
            f"{type(policy.model).__name__}: log-probs from hidden states and output embedding differ from the model's "
            f"own by {alone:.3g} nats (its weights are not finite, or it changes logits after the projection, as soft "
            "caps and scales do); learner/policy.py must learn its form first"
        )
    return difference(1024) <= tolerance


def parity_samples(vocabulary: int) -> list[Sample]:
    """Three answers of a few arbitrary tokens to one prompt."""
    return [_parity_sample(seed, vocabulary) for seed in range(3)]


def _parity_sample(seed: int, vocabulary: int) -> Sample:
    """A prompt of 6 tokens, the same for all, and an answer of some more."""
    generator = np.random.default_rng(seed)
    prompt = (np.arange(6) * 7 + 1) % vocabulary
    answer = generator.integers(0, vocabulary, 4 + seed)
    token_ids = np.concatenate([prompt, answer]).astype(np.int32)
    trainable = np.arange(len(token_ids)) >= len(prompt)
    nothing = np.zeros(len(token_ids))
    return Sample(
        token_ids,
        trainable,
        nothing.astype(np.float32),
        nothing.astype(np.int32),
        advantage=0.0,
        temperature=1.0,
    )


def _own_logprobs(model: Any, sample: Sample, device: torch.device) -> Tensor:
    token_ids = torch.from_numpy(sample.token_ids.astype(np.int64)).to(device).unsqueeze(0)
    logp = torch.log_softmax(model(input_ids=token_ids, use_cache=False).logits[0, :-1].float(), -1)
    return logp.gather(-1, token_ids[0, 1:].unsqueeze(-1)).squeeze(-1)[sample.prompt_tokens - 1 :]
