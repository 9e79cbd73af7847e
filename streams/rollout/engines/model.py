"""A Hugging Face directory as a model to decode with: how it attends, how far it sees, how new weights are read.

Names and shapes on the disk are those of the hub, and differ from those in memory (experts are stacked, GPT-NeoX's
`embed_out` is `lm_head`, …). transformers alone knows how, so every directory is read through it.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AttentionInterface, AutoConfig, AutoModelForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.utils import logging as transformers_logging

from streams.rollout.engines.base import ModelRefused

_ATTENTION = "headwater_grouped"
_UNREADABLE = (SafetensorError, OSError, ValueError, RuntimeError, KeyError)
"""What transformers raises for files that are no model's."""


def load_model(directory: Path, dtype: torch.dtype) -> tuple[Any, frozenset[str]]:
    """The causal model of a directory on the CPU, and the names of stored weights that it has no use for.

    Raises ModelRefused where no causal model is there, or not all of its weights: transformers makes up the others.
    """
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()  # what does not fit is told once, below
    AttentionInterface.register(_ATTENTION, grouped_attention)
    try:
        config = AutoConfig.from_pretrained(directory, local_files_only=True)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            directory,
            config=config,
            dtype=dtype,
            attn_implementation=_attention(config),
            local_files_only=True,
            output_loading_info=True,
        )
    except _UNREADABLE as error:
        raise ModelRefused(f"no model to sample with in {directory}: {error}") from error
    model, found = loaded
    if found["missing_keys"]:
        raise ModelRefused(f"{directory} lacks weights of {type(model).__name__}: {_some(found['missing_keys'])}")
    known, drawn = (layer.weight.shape[0] for layer in (model.get_input_embeddings(), model.get_output_embeddings()))
    if drawn > known:
        raise ModelRefused(f"{type(model).__name__} gives logits to {drawn} tokens, but its embedding has {known} rows")
    return model, frozenset(found["unexpected_keys"])


def read_weights(directory: Path, model: Any, ignored: frozenset[str]) -> dict[str, Tensor]:
    """What a directory holds for `model`, by the names of its `state_dict`, in its type, on the CPU.

    Raises ValueError where it is not all of the model's, or more than that (but for the names in `ignored`).
    """
    if not any(directory.glob("*.safetensors")):
        raise ValueError(f"no *.safetensors in {directory}")
    try:
        read, found = type(model).from_pretrained(
            directory,
            config=model.config,
            dtype=model.dtype,
            local_files_only=True,
            output_loading_info=True,
        )
    except _UNREADABLE as error:
        if "ignore_mismatched_sizes" in str(error):  # transformers names them in its log only
            raise ValueError(f"weights in {directory} have other shapes than those of the model") from error
        raise ValueError(f"cannot read weights from {directory}: {error}") from error
    if found["missing_keys"]:
        raise ValueError(f"{directory} lacks weights of the model: {_some(found['missing_keys'])}")
    if unknown := found["unexpected_keys"] - ignored:
        raise ValueError(f"{directory} has weights that the model has not: {_some(unknown)}")
    return dict(read.state_dict())


def stored_in_float32(directory: Path) -> bool:
    """Whether any weight of a directory is stored in float32. Reads no weight."""
    for path in directory.glob("*.safetensors"):
        with safe_open(path, framework="pt") as file:
            if any(file.get_slice(name).get_dtype() == "F32" for name in file.keys()):  # noqa: SIM118 (it is no mapping)
                return True
    return False


def max_context_tokens(config: Any) -> int:
    """The context; within the sliding window where a model has one, for there all layers see alike.

    Raises ModelRefused for a model that does not say it.
    """
    text = config.get_text_config(decoder=True)
    context = getattr(text, "max_position_embeddings", None)
    if context is None:
        raise ModelRefused(
            f"a model of type {text.model_type} cannot be sampled with here: it says no max_position_embeddings, as "
            "models whose attention is biased by distance (ALiBi) do, and their form of mask is not supported"
        )
    window = getattr(text, "sliding_window", None) if getattr(text, "use_sliding_window", True) else None
    return min(context, window or context)


def as_mask(visible: Tensor, model: Any) -> Tensor:
    """`visible` (bool, True: attended) in the form that the model's attention takes: eager attention adds it."""
    if model.config._attn_implementation != "eager":
        return visible
    hidden = torch.finfo(model.dtype).min
    return torch.zeros_like(visible, dtype=model.dtype).masked_fill_(~visible, hidden)


def grouped_attention(
    module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **settings: Any
) -> tuple[Tensor, Tensor | None]:
    """Attention of one new token a row, where query heads share key-value heads, without copying keys for each head.

    The query heads of a key-value head take the place of query tokens: all of them see the same keys. Four to six times
    faster on a CPU than repeating keys and values. Everything else goes to transformers' own `sdpa`.
    """
    rows, heads, tokens, dimension = query.shape
    if tokens != 1 or attention_mask is None or settings.get("position_bias") is not None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
    folded = query.view(rows, key.shape[1], heads // key.shape[1], dimension)
    attended = torch.nn.functional.scaled_dot_product_attention(
        folded, key, value, attn_mask=attention_mask, scale=settings.get("scaling")
    )
    return attended.reshape(rows, 1, heads, value.shape[3]), None


def _attention(config: Any) -> str:
    """`sdpa` ignores a cap on attention's logits (Gemma 2); some models have their own attention only."""
    if getattr(config.get_text_config(decoder=True), "attn_logit_softcapping", None):
        return "eager"
    model: Any = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if model is None or model._supports_attention_backend:
        return _ATTENTION
    return "sdpa" if model._supports_sdpa else "eager"


def _some(names: set[str]) -> str:
    return ", ".join(sorted(names)[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
