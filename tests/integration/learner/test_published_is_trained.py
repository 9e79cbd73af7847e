"""What is sampled with is what was trained: the sampler's log-probs and the learner's agree after updates.

The real parts of both sides: the transformers engine, DeepSpeed, snapshots on the disk in between.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from learner.algorithms.grpo import Grpo
from learner.config import Dtype, LearnerConfig
from learner.training.batch import collate, pack
from learner.training.engine import DeepSpeedEngine, start_engine
from learner.training.pace import Pace
from learner.training.probe import Probe, Publication
from learner.training.samples import Sample
from learner.training.step import optimizer_step
from learner.training.weights import write_snapshot
from learner.watch import PUBLISH_KL_ALARM
from schemas import PolicyVersion
from streams.rollout.engines.base import SampleRequest
from streams.rollout.engines.transformers_engine import TransformersEngine
from tests.learner_support import learner_config, tiny_model

UPDATES = 3
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.06}
"""Nats, any token. Logits reach 10 here: bfloat16 keeps 8 bits of one, which is 0.02 to 0.04."""


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Peaked enough that a token's log-prob says something: answers are no uniform noise."""
    return tiny_model(tmp_path_factory.mktemp("peaked") / "tiny-llama", initializer_range=0.3)


@asynccontextmanager
async def sampling(directory: Path, dtype: Dtype) -> AsyncIterator[TransformersEngine]:
    sampler = TransformersEngine(directory, device="cpu", dtype=getattr(torch, dtype), max_batch=16, seed=1)
    await sampler.start()
    try:
        yield sampler
    finally:
        await sampler.stop()


async def answers(sampler: TransformersEngine) -> list[Sample]:
    """Four answers to each of three prompts, rewarded for their first token's parity."""
    samples: list[Sample] = []
    for number in range(3):
        prompt = [7 + number, 11, 13 + 2 * number, 17]
        request = SampleRequest(f"group-{number}", prompt, list(range(4)), temperature=1.0, max_new_tokens=12)
        async for completion in sampler.sample(request):
            assert {span.version for span in completion.spans} == {sampler.version.version}
            answer = [token for span in completion.spans for token in span.token_ids]
            logprobs = [logprob for span in completion.spans for logprob in span.logprobs]
            token_ids = np.array([*prompt, *answer], dtype=np.int32)
            samples.append(
                Sample(
                    token_ids,
                    trainable=np.arange(len(token_ids)) >= len(prompt),
                    behaviour_logprobs=np.array([0.0] * len(prompt) + logprobs, dtype=np.float32),
                    ages=np.zeros(len(token_ids), dtype=np.int32),
                    advantage=1.0 if answer[0] % 2 else -1.0,
                    temperature=1.0,
                )
            )
    return samples


async def train(
    config: LearnerConfig,
    sampler: TransformersEngine,
    publish_dtype: Dtype,
    look: Callable[[DeepSpeedEngine, list[Sample]], None],
) -> list[Publication]:
    """A few updates on what the sampler samples, each published and loaded; then `look` at answers of the last."""
    engine = start_engine(config)
    probe = Probe(engine)
    publications: list[Publication] = []

    async def publish(version: int) -> None:
        directory = write_snapshot(
            config.weights,
            engine,
            PolicyVersion(1, version),
            config.model_directory,
            getattr(torch, publish_dtype),
        )
        await sampler.load(directory, 1, version)
        publications.append(probe.measure(directory))

    config.weights.mkdir(parents=True)
    await publish(0)
    for update in range(1, UPDATES + 1):
        samples = await answers(sampler)
        probe.settle(samples)
        assert optimizer_step(engine, samples, Grpo(0.2, 0.28), Pace(256)).applied
        await publish(update)
    look(engine, await answers(sampler))
    return publications


@torch.no_grad()
def differences(engine: DeepSpeedEngine, samples: list[Sample]) -> Tensor:
    """|sampler's log-prob − learner's| of each sampled token, nats."""
    batch = collate(pack(samples, 1024))
    logp, _ = engine.policy(*engine.policy.of(batch, engine.device))
    return (logp - batch.behaviour_logprobs).abs()


@pytest.mark.parametrize("zero_stage", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
async def test_sampler_and_learner_agree_after_updates(
    tmp_path: Path, model_directory: Path, dtype: Dtype, zero_stage: int
):
    config = learner_config(
        tmp_path, model_directory, dtype=dtype, zero_stage=zero_stage, learning_rate=3e-3, warmup_updates=0
    )

    def agree(engine: DeepSpeedEngine, samples: list[Sample]) -> None:
        assert float(differences(engine, samples).max()) < TOLERANCE[dtype]

    async with sampling(model_directory, dtype) as sampler:
        publications = await train(config, sampler, config.training.snapshot_dtype, agree)
    assert [publication.kl for publication in publications] == pytest.approx([0.0] * (UPDATES + 1), abs=1e-9)
    steps = [publication.step_kl or 0.0 for publication in publications[1:]]
    assert min(steps) > 10 * PUBLISH_KL_ALARM  # or the updates would have been too small to be missed
    assert all((publication.changed or 0.0) > 0.2 for publication in publications[1:])


async def test_a_snapshot_rounded_on_purpose_is_caught(
    tmp_path: Path, model_directory: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("learner.training.weights.dithered", lambda values, seed: values.bfloat16())
    config = learner_config(tmp_path, model_directory, learning_rate=1e-4, warmup_updates=0)

    def disagree(engine: DeepSpeedEngine, samples: list[Sample]) -> None:
        assert float(differences(engine, samples).max()) > 10 * TOLERANCE["float32"]

    async with sampling(model_directory, "float32") as sampler:
        publications = await train(config, sampler, "bfloat16", disagree)
    assert publications[0].kl == 0.0  # the base model is on the grid: at the start nothing shows
    assert publications[-1].kl > PUBLISH_KL_ALARM
    assert all((publication.changed or 0.0) < 0.2 for publication in publications[1:])
