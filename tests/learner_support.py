"""A model, settings and groups small enough to train on in a test."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from learner.config import LearnerConfig, Training
from learner.training.engine import DeepSpeedEngine
from schemas import Member, PolicyVersion, SourcePosition, TokenSpan, Trajectory, Unscorable, UnscorableReason
from schemas.tokens import pack_logprobs, pack_token_ids

VOCABULARY = 97


def tiny_model(directory: Path, seed: int = 0, initializer_range: float = 0.02) -> Path:
    """A random Llama of 20,000 parameters as a Hugging Face directory, with a tokenizer of one word a token.

    Its weights are on the grid of bfloat16, as those of most published models are.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            tie_word_embeddings=True,
            initializer_range=initializer_range,
        )
    )
    model.bfloat16().float()
    model.generation_config = GenerationConfig(eos_token_id=[3, 5], pad_token_id=3)
    model.save_pretrained(directory)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCABULARY)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words)
    tokenizer.chat_template = "{{ messages }}"
    tokenizer.save_pretrained(directory)
    return directory


def learner_config(directory: Path, model_directory: Path, **changes: Any) -> LearnerConfig:
    """Settings of a run in `directory`; `changes` are of the section `[training]`."""
    settings: dict[str, Any] = {
        "batch_groups": 2,
        "max_staleness": 1,
        "max_updates": 3,
        "max_seconds": None,
        "learning_rate": 1e-3,
        "warmup_updates": 2,
        "weight_decay": 0.1,
        "max_grad_norm": 0.5,
        "micro_batch_tokens": 64,
        "dtype": "float32",
        "threads": 1,
        "checkpoint_every_updates": 1,
        "keep_snapshots": 2,
    }
    return LearnerConfig(
        run_id="run-1",
        run_directory=directory,
        model="tiny",
        model_directory=model_directory,
        partitions=4,
        seed=0,
        training=Training(**(settings | changes)),
    )


def trajectory(
    number: int, *, log_id: str = "log-1", version: PolicyVersion | None = None, **changes: Any
) -> Trajectory:
    """A group of four answers of 3 to 9 tokens to one prompt, rewards 1, 0, −1 and none; the same for each number."""
    generator = np.random.default_rng(number)
    prompt = generator.integers(0, VOCABULARY, 6).tolist()
    members = [
        Member(
            sample_index=index,
            digest=f"{number}-{index}",
            reward=reward,
            unscorable=None if reward is not None else Unscorable(UnscorableReason.GRADER_FAULT),
            spans=(
                TokenSpan(token_ids=pack_token_ids(prompt)),
                sampled_span(
                    generator.integers(0, VOCABULARY, int(generator.integers(3, 10))).tolist(),
                    version or PolicyVersion(1, 0),
                ),
            ),
        )
        for index, reward in enumerate((1.0, 0.0, -1.0, None))
    ]
    fields: dict[str, Any] = {
        "run_id": "run-1",
        "group_id": f"group-{number}",
        "log_id": log_id,
        "admission_number": number,
        "domain": "sums",
        "prompt_id": f"prompt-{number}",
        "num_samples": len(members),
        "members": tuple(members),
        "source": SourcePosition(source="train", index=number),
    }
    return Trajectory(**(fields | changes))


def sampled_span(token_ids: Sequence[int], version: PolicyVersion) -> TokenSpan:
    """A trainable span; every log-prob is that of a uniform choice."""
    logprob = -float(np.log(VOCABULARY))
    return TokenSpan(
        token_ids=pack_token_ids(token_ids),
        logprobs=pack_logprobs([logprob] * len(token_ids)),
        trainable=True,
        policy_version=version,
    )


def weights_of(engine: DeepSpeedEngine) -> dict[str, torch.Tensor]:
    """A copy of every parameter, whole."""
    copies: dict[str, torch.Tensor] = {}
    for name, parameter in engine.parameters():
        with engine.gathered(parameter) as whole:
            copies[name] = whole.detach().clone()
    return copies


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]
