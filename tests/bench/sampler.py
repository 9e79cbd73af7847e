"""The `transformers` rollout engine against `model.generate` of transformers: same prompts, batch, type and threads."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from streams.rollout.engines.base import SampleRequest
from streams.rollout.engines.transformers_engine import TransformersEngine
from tasks.domains.functions import make_task
from tests.bench.measure import Measurement, alternate
from tests.bench.output import steps
from tests.bench.small_model import bench_model

GROUP_SIZE = 8
THREADS = 1
"""As in the demo, where the other core trains."""


async def run(quick: bool) -> dict[str, Any]:
    """Sampled tokens a second, counted up to and with the token that ends an answer."""
    groups, max_new_tokens, rounds = (2, 16, 2) if quick else (4, 62, 3)
    dtype = torch.bfloat16
    result = Measurement("sampler", rounds)
    with tempfile.TemporaryDirectory() as scratch:
        directory = await bench_model(quick, Path(scratch))
        engine = TransformersEngine(
            directory, device="cpu", dtype=dtype, max_batch=groups * GROUP_SIZE, seed=0, num_threads=THREADS
        )
        await engine.start()
        prompts = [engine.render(make_task("train", number, seed=0).messages) for number in range(groups)]
        plain = PlainSampler(directory, dtype)

        async def ours() -> float:
            start = time.perf_counter()
            counts = await asyncio.gather(
                *(_sample(engine, f"{start}-{number}", prompt, max_new_tokens) for number, prompt in enumerate(prompts))
            )
            return sum(counts) / (time.perf_counter() - start)

        async def theirs() -> float:
            return await asyncio.to_thread(plain.tokens_per_second, prompts, max_new_tokens)

        with steps("sampler", 2 * rounds + 2) as advance:
            await alternate({"ours": ours, "theirs": theirs}, 1, advance)  # first calls make caches
            rates = await alternate({"ours": ours, "theirs": theirs}, rounds, advance)
        await engine.stop()
    result.ratio("engine_over_generate_tokens_per_second", rates["ours"], rates["theirs"])
    result.figures = {
        "engine_sampled_tokens_per_second": round(statistics.median(rates["ours"]), 1),
        "generate_sampled_tokens_per_second": round(statistics.median(rates["theirs"]), 1),
        "batch_sequences": groups * GROUP_SIZE,
        "max_new_tokens": max_new_tokens,
        "prompt_tokens": sum(map(len, prompts)) / groups,
        "model": "small random Llama" if quick else directory.name,
        "dtype": "bfloat16",
        "threads": THREADS,
    }
    return result.as_json()


async def _sample(engine: TransformersEngine, group_id: str, prompt: list[int], max_new_tokens: int) -> int:
    request = SampleRequest(
        group_id=group_id,
        prompt_token_ids=prompt,
        sample_indices=list(range(GROUP_SIZE)),
        temperature=1.0,
        max_new_tokens=max_new_tokens,
    )
    return sum([sum(len(span.token_ids) for span in done.spans) async for done in engine.sample(request)])


class PlainSampler:
    """What a script would do: left-padded prompts, `generate` with sampling, no log-probs kept."""

    def __init__(self, directory: Path, dtype: torch.dtype) -> None:
        from transformers import AutoModelForCausalLM

        self._model: Any = AutoModelForCausalLM.from_pretrained(directory, dtype=dtype, attn_implementation="sdpa")
        eos = self._model.generation_config.eos_token_id
        self._eos = set(eos if isinstance(eos, list) else [eos])
        self._pad = self._model.generation_config.pad_token_id

    def tokens_per_second(self, prompts: Sequence[list[int]], max_new_tokens: int) -> float:
        """One call on every prompt `GROUP_SIZE` times."""
        torch.set_num_threads(THREADS)
        rows = [prompt for prompt in prompts for _ in range(GROUP_SIZE)]
        width = max(map(len, rows))
        input_ids = torch.tensor([[self._pad] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        start = time.perf_counter()
        with torch.inference_mode():
            answers = self._model.generate(
                input_ids,
                attention_mask=mask,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                max_new_tokens=max_new_tokens,
            )[:, width:]
        seconds = time.perf_counter() - start
        return sum(self._sampled(row) for row in answers.tolist()) / seconds

    def _sampled(self, row: list[int]) -> int:
        return next((number + 1 for number, token in enumerate(row) if token in self._eos), len(row))
