"""The learner's DeepSpeed step against a plain torch AdamW step on the same batch, in the same type and threads."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from learner.algorithms.grpo import Grpo
from learner.config import LearnerConfig, Training
from learner.training.engine import start_engine
from learner.training.pace import Pace
from learner.training.samples import Sample
from learner.training.step import optimizer_step
from tests.bench.measure import Measurement, alternate
from tests.bench.output import steps
from tests.bench.small_model import bench_model

GROUP_SIZE = 8
MICRO_BATCH_TOKENS = 4096
GRPO = Grpo(clip_low=0.2, clip_high=0.28)
LEARNING_RATE = 1e-6
MAX_GRAD_NORM = 1.0
THREADS = 1
"""As in the demo, where the other core samples."""


async def run(quick: bool) -> dict[str, Any]:
    """Tokens a second: those of all sequences, prompts counted for each answer, whatever a side does with them."""
    groups, rounds = (1, 2) if quick else (2, 3)
    result = Measurement("learner", rounds)
    with tempfile.TemporaryDirectory() as scratch:
        directory = await bench_model(quick, Path(scratch))
        engine = start_engine(_config(directory, Path(scratch)))
        samples = make_samples(groups, engine.vocabulary)
        pace = Pace(MICRO_BATCH_TOKENS)
        tokens = sum(len(sample.token_ids) for sample in samples)
        plain = PlainStep(directory)
        one_answer_a_row = replace(engine, shares_prompts=False)

        def timed(step: Callable[[], Any]) -> Callable[[], Any]:
            async def side() -> float:
                start = time.perf_counter()
                await asyncio.to_thread(_single_threaded, step)
                return tokens / (time.perf_counter() - start)

            return side

        sides = {
            "ours": timed(lambda: optimizer_step(engine, samples, GRPO, pace)),
            "unshared": timed(lambda: optimizer_step(one_answer_a_row, samples, GRPO, pace)),
            "plain": timed(lambda: plain.step(samples)),
        }
        with steps("learner", 3 * rounds + 3) as advance:
            await alternate(sides, 1, advance)  # first steps make the optimizers' state
            rates = await alternate(sides, rounds, advance)
    result.ratio("deepspeed_over_plain_tokens_per_second", rates["ours"], rates["plain"])
    result.ratio("deepspeed_over_plain_without_shared_prompts", rates["unshared"], rates["plain"])
    result.figures = {
        "learner_tokens_per_second": round(statistics.median(rates["ours"]), 1),
        "learner_tokens_per_second_without_shared_prompts": round(statistics.median(rates["unshared"]), 1),
        "plain_torch_tokens_per_second": round(statistics.median(rates["plain"]), 1),
        "batch_sequences": len(samples),
        "batch_tokens": tokens,
        "batch_trainable_tokens": sum(sample.trainable_tokens for sample in samples),
        "model": "small random Llama" if quick else directory.name,
        "dtype": "bfloat16",
        "threads": THREADS,
    }
    return result.as_json()


def make_samples(groups: int, vocabulary: int) -> list[Sample]:
    """Answers of 20 to 62 tokens behind prompts of about 60, eight to a prompt; the same every time."""
    generator = np.random.default_rng(0)
    samples: list[Sample] = []
    for _ in range(groups):
        prompt = generator.integers(0, vocabulary, int(generator.integers(50, 70)))
        for _ in range(GROUP_SIZE):
            answer = generator.integers(0, vocabulary, int(generator.integers(20, 63)))
            trainable = np.arange(len(prompt) + len(answer)) >= len(prompt)
            samples.append(
                Sample(
                    token_ids=np.concatenate([prompt, answer]).astype(np.int32),
                    trainable=trainable,
                    behaviour_logprobs=np.where(trainable, -float(np.log(vocabulary)), 0.0).astype(np.float32),
                    ages=np.zeros(len(trainable), np.int32),
                    advantage=float(generator.normal()),
                    temperature=1.0,
                )
            )
    return samples


class PlainStep:
    """What a script would do: one answer a row, padded; logits at every position; clipped ratio, token mean, AdamW.

    Weights and moments are bfloat16, where the learner keeps float32 masters: its optimizer has four times the bytes.
    """

    def __init__(self, directory: Path) -> None:
        from transformers import AutoModelForCausalLM

        self._model: Any = AutoModelForCausalLM.from_pretrained(
            directory, dtype=torch.bfloat16, attn_implementation="sdpa"
        )
        self._model.train()
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), fused=True)

    def step(self, samples: Sequence[Sample]) -> None:
        """Micro-batches of similar lengths within the same budget of padded tokens, then one optimizer step."""
        denominator = sum(sample.trainable_tokens for sample in samples)
        part: list[Sample] = []
        for sample in sorted(samples, key=lambda sample: -len(sample.token_ids)):
            if part and (len(part) + 1) * len(part[0].token_ids) > MICRO_BATCH_TOKENS:
                self._accumulate(part, denominator)
                part = []
            part.append(sample)
        self._accumulate(part, denominator)
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), MAX_GRAD_NORM)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def _accumulate(self, samples: Sequence[Sample], denominator: int) -> None:
        width = len(samples[0].token_ids)
        ids = torch.zeros(len(samples), width, dtype=torch.long)
        trainable = torch.zeros(len(samples), width, dtype=torch.bool)
        behaviour = torch.zeros(len(samples), width)
        for row, sample in enumerate(samples):
            end = len(sample.token_ids)
            ids[row, :end] = torch.from_numpy(sample.token_ids.astype(np.int64))
            trainable[row, :end] = torch.from_numpy(sample.trainable)
            behaviour[row, :end] = torch.from_numpy(sample.behaviour_logprobs)
        advantages = torch.tensor([sample.advantage for sample in samples])[:, None]
        logits = self._model(input_ids=ids, use_cache=False).logits[:, :-1].float()
        logp = logits.log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
        ratio = (logp - behaviour[:, 1:]).clamp(-20, 20).exp()
        loss = -torch.minimum(ratio * advantages, ratio.clamp(1 - GRPO.clip_low, 1 + GRPO.clip_high) * advantages)
        (loss[trainable[:, 1:]].sum() / denominator).backward()


def _single_threaded(step: Callable[[], Any]) -> None:
    torch.set_num_threads(THREADS)
    step()


def _config(model: Path, directory: Path) -> LearnerConfig:
    return LearnerConfig(
        run_id="bench",
        run_directory=directory / "run",
        model=model.name,
        model_directory=model,
        partitions=1,
        seed=0,
        training=Training(
            batch_groups=1,
            max_staleness=1,
            max_updates=1,
            learning_rate=LEARNING_RATE,
            clip_low=GRPO.clip_low,
            clip_high=GRPO.clip_high,
            max_grad_norm=MAX_GRAD_NORM,
            micro_batch_tokens=MICRO_BATCH_TOKENS,
            dtype="bfloat16",
            threads=THREADS,
        ),
    )
