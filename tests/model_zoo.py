"""Random models of two layers, one an architecture, written as the hub has them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file

VOCABULARY = 64
"""Rows of every embedding."""
WORDS = 60
"""Tokens that the tokenizer knows: embeddings of published models are padded."""
CONTEXT = 128
TURN_END = 9
"""`<|im_end|>`, which only the chat template names."""
TEMPLATE = (
    "{% for m in messages %}<|im_start|> {{ m['role'] }} {{ m['content'] }} <|im_end|> {% endfor %}"
    "{% if add_generation_prompt %}<|im_start|> assistant {% endif %}"
)
_COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 1,
    "eos_token_id": 3,
    "pad_token_id": 0,
}
_EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
_OWN_NAMES = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 3}


@dataclass(frozen=True, slots=True)
class Architecture:
    """How one is made, and what is peculiar about it."""

    config: str
    """Class in transformers."""
    settings: dict[str, Any]
    rename: Callable[[str], str] = str
    """Names on the disk of transformers → names that old files on the hub have."""


def _like_llama(config: str, **settings: Any) -> Architecture:
    return Architecture(config, _COMMON | settings)


_GPT2 = _OWN_NAMES | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT}
_FALCON = _OWN_NAMES | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_dropout": 0.5}

SUPPORTED: dict[str, Architecture] = {
    "Llama": _like_llama("LlamaConfig"),
    "Llama, tied": _like_llama("LlamaConfig", tie_word_embeddings=True),
    "Llama, no pad, two ends": _like_llama("LlamaConfig", pad_token_id=None, eos_token_id=[3, 4]),
    "Qwen2": _like_llama("Qwen2Config"),
    "Qwen2, tied": _like_llama("Qwen2Config", tie_word_embeddings=True),
    "Qwen2-MoE": _like_llama("Qwen2MoeConfig", num_experts=4, shared_expert_intermediate_size=16, **_EXPERTS),
    "Qwen3": _like_llama("Qwen3Config", head_dim=8),
    "Qwen3-MoE": _like_llama("Qwen3MoeConfig", head_dim=8, num_experts=4, **_EXPERTS),
    "Mixtral": _like_llama("MixtralConfig", num_local_experts=4, num_experts_per_tok=2),
    "OLMoE": _like_llama("OlmoeConfig", num_experts=4, num_experts_per_tok=2),
    "Mistral": _like_llama("MistralConfig", sliding_window=96),
    "Gemma 2": _like_llama(
        "Gemma2Config", head_dim=8, query_pre_attn_scalar=8, attn_logit_softcapping=2.0, final_logit_softcapping=3.0
    ),
    "Gemma 3": _like_llama("Gemma3TextConfig", head_dim=8, query_pre_attn_scalar=8, sliding_window=64),
    "Phi": _like_llama("PhiConfig", resid_pdrop=0.5, embd_pdrop=0.5),
    "Phi-3": _like_llama("Phi3Config", resid_pdrop=0.5),
    "GPT-2": Architecture("GPT2Config", _GPT2),
    "GPT-2, as first published": Architecture("GPT2Config", _GPT2, lambda name: name.removeprefix("transformer.")),
    "GPT-NeoX": _like_llama("GPTNeoXConfig", hidden_dropout=0.5),
    "OPT": Architecture(
        "OPTConfig",
        _OWN_NAMES
        | {
            "hidden_size": 32,
            "word_embed_proj_dim": 16,
            "ffn_dim": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": CONTEXT,
            "dropout": 0.5,
        },
    ),
    "Falcon": Architecture("FalconConfig", _FALCON | {"alibi": False, "multi_query": True}),
    "OLMo 2": _like_llama("Olmo2Config"),
    "Granite": _like_llama("GraniteConfig", logits_scaling=4.0, embedding_multiplier=3.0, attention_multiplier=0.3),
    "Cohere": _like_llama("CohereConfig", logit_scale=0.25),
    "SmolLM3": _like_llama("SmolLM3Config"),
}
REFUSED: dict[str, Architecture] = {
    "Bloom": Architecture("BloomConfig", _OWN_NAMES | {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "Falcon, ALiBi": Architecture("FalconConfig", _FALCON | {"alibi": True, "multi_query": True}),
}


def write_model(directory: Path, architecture: Architecture) -> Path:
    """A Hugging Face directory: random weights on the grid of bfloat16, none of them 0, and a tokenizer of words."""
    torch.manual_seed(0)
    config = getattr(transformers, architecture.config)(**architecture.settings)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.15 * torch.randn_like(parameter)  # biases too
    model.bfloat16().float().save_pretrained(directory)
    file = directory / "model.safetensors"
    save_file({architecture.rename(name): tensor for name, tensor in load_file(file).items()}, file, {"format": "pt"})
    write_tokenizer(directory)
    return directory


def write_tokenizer(directory: Path, template: str | None = TEMPLATE, words: int = WORDS) -> None:
    """Word w0 is token 0, and so on; 8 and 9 are the marks of a turn. No end of text."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    names = {f"w{number}": number for number in range(words) if number not in (8, TURN_END)}
    model = Tokenizer(models.WordLevel(names | {"<|im_start|>": 8, "<|im_end|>": TURN_END}, unk_token="w0"))
    model.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    model.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=model)
    if template is not None:
        tokenizer.chat_template = template
    tokenizer.save_pretrained(directory)


def stored_names(directory: Path) -> set[str]:
    """Of the weights, as they are on the disk."""
    return {name for path in directory.glob("*.safetensors") for name in load_file(path)}
