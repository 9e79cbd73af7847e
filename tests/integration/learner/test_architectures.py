"""Every architecture of the README's table, through all that a run does with a model, or refused with the reason.

sample → the learner's log-probs are the sampler's → an update on packed rows → snapshot → load → sample again → export
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from headwater.files.export import export_model
from headwater.files.run_directory import RunDirectory
from learner.algorithms.grpo import Grpo
from learner.training.batch import pack
from learner.training.engine import start_engine
from learner.training.pace import Pace
from learner.training.step import optimizer_step
from learner.training.weights import write_snapshot
from schemas import PolicyVersion
from streams.rollout.engines.base import ModelRefused
from streams.rollout.engines.transformers_engine import TransformersEngine
from tests.integration.learner.test_published_is_trained import answers, differences, sampling
from tests.learner_support import learner_config
from tests.model_zoo import REFUSED, SUPPORTED, stored_names, write_model

TOLERANCE = 2e-4
"""Nats, any token, in float32."""


@pytest.mark.parametrize("name", SUPPORTED)
async def test_supported(name: str, tmp_path: Path):
    model_directory = write_model(tmp_path / "model", SUPPORTED[name])
    config = learner_config(tmp_path / "run", model_directory, learning_rate=3e-2, warmup_updates=0)
    config.weights.mkdir(parents=True)
    async with sampling(model_directory, "float32") as sampler:
        before = await answers(sampler)
        engine = start_engine(config)
        assert engine.shares_prompts
        rows = pack(before, 1024)
        assert max(len(row.samples) for row in rows) > 1  # or nothing would be packed
        assert float(differences(engine, before).max()) < TOLERANCE
        result = optimizer_step(engine, before, Grpo(0.2, 0.28), Pace(1024))
        assert result.applied
        assert result.mismatch_kl < 1e-6  # of the pass that trains: no dropout

        snapshot = write_snapshot(config.weights, engine, PolicyVersion(1, 1), model_directory, torch.float32)
        assert float(differences(engine, before).max()) > 100 * TOLERANCE  # or the step would have changed nothing
        await sampler.load(snapshot, 1, 1)
        assert float(differences(engine, await answers(sampler)).max()) < TOLERANCE

    export_model(RunDirectory(config.run_directory), tmp_path / "exported")
    assert set(map(SUPPORTED[name].rename, stored_names(tmp_path / "exported"))) == stored_names(model_directory)
    loaded: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "exported", output_loading_info=True)
    again, found = loaded
    assert not found["missing_keys"]
    trained = dict(engine.parameters())
    for weight_name, weight in again.named_parameters():
        torch.testing.assert_close(weight, trained[weight_name], rtol=0, atol=0)


@pytest.mark.parametrize("name", REFUSED)
async def test_refused(name: str, tmp_path: Path):
    sampler = TransformersEngine(
        write_model(tmp_path, REFUSED[name]), device="cpu", dtype=torch.float32, max_batch=4, seed=0
    )
    with pytest.raises(ModelRefused, match="cannot be sampled with here: it"):
        await sampler.start()
