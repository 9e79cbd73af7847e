"""Log-probs and entropy of tokens, without the whole [tokens, vocabulary] at once.

The vocabulary is what makes logits large: 4,000 tokens of 49,152 entries are 0.8 GB in float32, and their
gradient as much again. So hidden states are projected a chunk at a time, and where there is more than
one chunk, each is projected again on the way back instead of being kept.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

CHUNK_TOKENS = 1024


def logp_entropy(logits: Tensor, token_ids: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Of the tempered distribution: log-prob of each token, and its entropy in nats.

    logits: [tokens, vocabulary], at least float32. token_ids, temperature: [tokens]. Returns two [tokens].
    """
    logp_all = torch.log_softmax(logits / temperature.to(logits.dtype).unsqueeze(-1), dim=-1)
    logp = logp_all.gather(-1, token_ids.unsqueeze(-1)).squeeze(-1)
    # p·log p is 0 at p = 0, where log p is −inf
    entropy = -(logp_all.exp() * logp_all.clamp(min=torch.finfo(logits.dtype).min)).sum(-1)
    return logp, entropy


@dataclass(frozen=True, slots=True)
class Head:
    """How a model makes logits of hidden states: scale · (hidden @ weightᵀ + bias), within ±cap by cap · tanh(… / cap).

    `check_parity` holds it against the model's own, so that a form that is not here is refused.
    """

    weight: Tensor
    """[vocabulary, width], the output embedding."""
    bias: Tensor | None = None
    """[vocabulary] (Phi)."""
    scale: float = 1.0
    """Granite, Cohere."""
    cap: float | None = None
    """Gemma 2."""

    @classmethod
    def of(cls, model: Any) -> "Head":
        """Of a transformers model, as its configuration says."""
        output, config = model.get_output_embeddings(), model.config.get_text_config(decoder=True)
        scale = (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)
        return cls(output.weight, output.bias, float(scale), getattr(config, "final_logit_softcapping", None))

    def logits(self, hidden: Tensor) -> Tensor:
        """[tokens, vocabulary] float32 of [tokens, width]."""
        logits = torch.nn.functional.linear(hidden, self.weight, self.bias).float()
        if self.scale != 1.0:
            logits = logits * self.scale
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


def project(
    hidden: Tensor,
    head: Head,
    token_ids: Tensor,
    temperature: Tensor,
    chunk_tokens: int = CHUNK_TOKENS,
) -> tuple[Tensor, Tensor]:
    """`logp_entropy` of the head's logits, in float32. The entropy has no gradient: it is only measured.

    hidden: [tokens, width]. Returns two [tokens].
    """
    if len(hidden) <= chunk_tokens:
        return _project_chunk(hidden, head, token_ids, temperature)
    logps: list[Tensor] = []
    entropies: list[Tensor] = []
    for start in range(0, len(hidden), chunk_tokens):
        part = slice(start, start + chunk_tokens)
        logp, entropy = checkpoint(
            _project_chunk, hidden[part], head, token_ids[part], temperature[part], use_reentrant=False
        )
        logps.append(logp)
        entropies.append(entropy)
    return torch.cat(logps), torch.cat(entropies)


def _project_chunk(hidden: Tensor, head: Head, token_ids: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    logits = head.logits(hidden)
    if not bool((temperature == 1).all()):
        logits = logits / temperature.float().unsqueeze(-1)
    # log-sum-exp rather than log-softmax: one [chunk, vocabulary] less is kept for the way back
    normaliser = logits.logsumexp(-1)
    logp = logits.gather(-1, token_ids.unsqueeze(-1)).squeeze(-1) - normaliser
    with torch.no_grad():
        probability = (logits - normaliser.unsqueeze(-1)).exp_()
        entropy = normaliser - torch.einsum("tv,tv->t", probability, logits)
    return logp, entropy
