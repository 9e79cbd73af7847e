"""The policy as training sees it: a causal language model that gives log-probs of chosen tokens."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from learner.errors import UnsupportedModel
from learner.training.batch import MicroBatch, collate, pack
from learner.training.logits import Head, project
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
        self.model: Any = model
        """A transformers model: typed in part only."""
        self.train()

    def train(self, mode: bool = True) -> Self:
        """The model stays in `eval` mode: a dropout would tear trained and sampled log-probs apart."""
        super().train(mode)
        self.model.eval()
        return self

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
        if attention_mask is not None and self.model.config._attn_implementation == "eager":
            # bool says what is seen; eager attention adds its mask to the scores
            seen, dtype = attention_mask, self.model.dtype
            attention_mask = torch.zeros_like(seen, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
        decoder = self.model.get_decoder()
        hidden: Tensor = decoder(
            input_ids=input_ids, position_ids=position_ids, attention_mask=attention_mask, use_cache=False
        ).last_hidden_state
        wanted, head = hidden[rows, columns], Head.of(self.model)
        if whole:
            return head.logits(wanted).log_softmax(-1)
        return project(wanted, head, token_ids, temperatures)

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
    """The policy of a Hugging Face directory.

    Raises UnsupportedModel where no causal model is there, or not all of its weights: transformers makes up the others.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(directory, local_files_only=True)
        kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
        # `sdpa` ignores a cap on attention's logits (Gemma 2)
        capped = getattr(config.get_text_config(decoder=True), "attn_logit_softcapping", None)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            directory,
            config=config,
            dtype=dtype,
            attn_implementation="sdpa" if kind is None or (kind._supports_sdpa and not capped) else "eager",
            local_files_only=True,
            output_loading_info=True,
        )
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise UnsupportedModel(f"no model to train in {directory}: {error}") from error
    model, found = loaded
    if missing := sorted(found["missing_keys"]):
        raise UnsupportedModel(
            f"{directory} lacks {len(missing)} weights of {type(model).__name__}, {missing[0]} among them"
        )
    return Policy(model.to(device))


@torch.no_grad()
def check_parity(policy: Policy, vocabulary: int) -> bool:
    """Compare with the model's own logits, sequence by sequence; return whether prompts may be shared.

    It is the forward pass that trains, in the mode that it trains in: what a dropout does shows here. A model that
    ignores masks or positions given from outside gets a row for each sample instead. Raises UnsupportedModel when even
    then its log-probs differ.
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
            f"{type(policy.model).__name__} cannot be trained here: log-probs from hidden states and output embedding "
            f"differ from the model's own by {alone:.3g} nats (its weights are not finite, or it makes logits in a "
            "form that learner/training/logits.py does not have)"
        )
    try:
        return difference(1024) <= tolerance
    except (ValueError, RuntimeError, TypeError):  # of its own code, for a mask of four dimensions
        return False


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
