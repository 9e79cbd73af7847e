"""The optimizer step on real DeepSpeed, against plain torch."""

import dataclasses
from pathlib import Path

import pytest
import torch
from deepspeed.utils import safe_get_full_fp32_param
from transformers import AutoModelForCausalLM

from learner.algorithms.grpo import Grpo
from learner.book.checkpoints import newest_checkpoint
from learner.book.incarnation import take_incarnation
from learner.config import LearnerConfig
from learner.errors import Superseded
from learner.training.checkpoint import load_checkpoint, save_checkpoint
from learner.training.engine import start_engine
from learner.training.pace import Pace
from learner.training.samples import Sample, samples_of
from learner.training.step import StepAbandoned, StepResult, optimizer_step
from tests.learner_support import learner_config, trajectory, weights_of

GRPO = Grpo(clip_low=0.2, clip_high=0.28)
SAMPLES = samples_of([trajectory(number) for number in range(4)], GRPO, lambda _: 0)

both_stages = pytest.mark.parametrize("zero_stage", [1, 3])


@pytest.fixture
def config(tmp_path: Path, model_directory: Path, zero_stage: int, dtype: str) -> LearnerConfig:
    return learner_config(tmp_path, model_directory, zero_stage=zero_stage, dtype=dtype)


@pytest.fixture
def dtype() -> str:
    return "float32"


def plain_torch_steps(config: LearnerConfig, steps: int) -> tuple[dict[str, torch.Tensor], list[float], list[float]]:
    """The same updates without DeepSpeed, micro-batches, packing or chunks: weights, losses, gradient norms."""
    model = AutoModelForCausalLM.from_pretrained(config.model_directory, dtype=torch.float32)
    matrices = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": config.training.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=config.training.learning_rate,
        betas=config.training.betas,
    )
    denominator = sum(sample.trainable_tokens for sample in SAMPLES)
    losses: list[float] = []
    norms: list[float] = []
    for update in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = config.training.learning_rate * min(1.0, (update + 1) / config.training.warmup_updates)
        optimizer.zero_grad()
        total = 0.0
        for sample in SAMPLES:
            token_ids = torch.tensor(sample.token_ids.tolist()).unsqueeze(0)
            logp = torch.log_softmax(model(input_ids=token_ids).logits[0, :-1].float() / sample.temperature, -1)
            logp = logp.gather(-1, token_ids[0, 1:].unsqueeze(-1)).squeeze(-1)
            trainable = torch.tensor(sample.trainable[1:].tolist())
            ratio = (logp - torch.tensor(sample.behaviour_logprobs[1:].tolist()))[trainable].exp()
            gain = torch.minimum(
                ratio * sample.advantage, ratio.clamp(1 - GRPO.clip_low, 1 + GRPO.clip_high) * sample.advantage
            )
            loss = -gain.sum() / denominator
            loss.backward()
            total += loss.item()
        losses.append(total)
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), config.training.max_grad_norm)))
        optimizer.step()
    return {name: parameter.detach() for name, parameter in model.named_parameters()}, losses, norms


def assert_same(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], atol: float = 2e-6) -> None:
    assert actual.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(
            actual[name], expected[name], rtol=1e-5, atol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )


@both_stages
def test_three_steps_equal_those_of_plain_torch(config: LearnerConfig):
    engine = start_engine(config)
    assert engine.shares_prompts
    results = [optimizer_step(engine, SAMPLES, GRPO, Pace(64)) for _ in range(3)]
    weights, losses, norms = plain_torch_steps(config, 3)
    assert all(result.micro_batches > 1 for result in results)
    assert [result.loss for result in results] == pytest.approx(losses, rel=1e-4, abs=1e-6)
    assert [result.grad_norm for result in results] == pytest.approx(norms, rel=1e-3)
    assert max(norms) > config.training.max_grad_norm  # or clipping would not be tested
    assert [result.learning_rate for result in results] == pytest.approx([5e-4, 1e-3, 1e-3])
    # Adam divides by the root of tiny squares: the last digits of a gradient show in the third digit of its step
    assert_same(weights_of(engine), weights, atol=2e-5)


@pytest.mark.parametrize("zero_stage", [1])
def test_any_cut_of_the_batch_gives_the_same_step(config: LearnerConfig):
    outcomes: list[tuple[StepResult, dict[str, torch.Tensor]]] = []
    for micro_batch_tokens, shares_prompts in ((1, False), (40, False), (40, True), (100_000, True)):
        engine = dataclasses.replace(start_engine(config), shares_prompts=shares_prompts)
        result = optimizer_step(engine, SAMPLES, GRPO, Pace(micro_batch_tokens))
        outcomes.append((result, weights_of(engine)))
    assert len({result.micro_batches for result, _ in outcomes}) == 4
    first, weights = outcomes[0]
    for result, other in outcomes[1:]:
        assert result.loss == pytest.approx(first.loss, rel=1e-5)
        assert result.grad_norm == pytest.approx(first.grad_norm, rel=1e-4)
        assert result.mismatch_kl == pytest.approx(first.mismatch_kl, rel=1e-4)
        assert result.entropy == pytest.approx(first.entropy, rel=1e-5)
        assert_same(other, weights, atol=2e-5)


@both_stages
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_step_that_is_not_finite_changes_nothing(config: LearnerConfig):
    spoilt = dataclasses.replace(SAMPLES[5], advantage=float("nan"))
    engine, untouched = start_engine(config), start_engine(config)
    before = weights_of(engine)
    for bad in ([*SAMPLES[:5], spoilt, *SAMPLES[6:]], [spoilt]):
        result = optimizer_step(engine, bad, GRPO, Pace(64))
        assert not result.applied
        assert_same(weights_of(engine), before, atol=0)
    # nothing of it is left in gradients, moments or the schedule either
    after, expected = (optimizer_step(each, SAMPLES, GRPO, Pace(64)) for each in (engine, untouched))
    assert after.applied
    assert (after.loss, after.learning_rate) == (expected.loss, expected.learning_rate)
    assert_same(weights_of(engine), weights_of(untouched), atol=0)


@pytest.mark.parametrize("zero_stage", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["bfloat16"])
def test_a_step_too_small_for_bfloat16_is_not_lost(config: LearnerConfig):
    small = config.training.model_copy(update={"learning_rate": 1e-5, "warmup_updates": 0})
    engine = start_engine(dataclasses.replace(config, training=small))
    before = weights_of(engine)
    optimizer_step(engine, SAMPLES, GRPO, Pace(64))
    after = weights_of(engine)
    trained = nearest = wanted = 0.0
    for name, parameter in engine.parameters():
        master = safe_get_full_fp32_param(parameter)
        start = before[name].float()
        step = master - start
        wanted += float((step * step).sum())
        trained += float((step * (after[name].float() - start)).sum())
        nearest += float((step * (master.bfloat16().float() - start)).sum())
    assert wanted > 0
    assert trained / wanted == pytest.approx(1.0, abs=0.2)
    assert nearest / wanted < 0.5


@pytest.mark.parametrize("zero_stage", [1])
def test_a_policy_that_is_not_finite_is_not_trained_on(config: LearnerConfig):
    engine = start_engine(config)
    with torch.no_grad():
        engine.policy.model.get_output_embeddings().weight[7] = float("inf")
    assert not engine.weights_finite()
    assert not optimizer_step(engine, SAMPLES, GRPO, Pace(64)).applied


@both_stages
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_resume_takes_the_very_same_next_step(config: LearnerConfig):
    engine = start_engine(config)
    optimizer_step(engine, SAMPLES, GRPO, Pace(64))
    save_checkpoint(config.checkpoints, engine, 1, b"{}", keep=2)
    saved = weights_of(engine)
    expected = optimizer_step(engine, SAMPLES, GRPO, Pace(64))

    resumed = start_engine(config)
    checkpoint = newest_checkpoint(config.checkpoints)
    assert checkpoint is not None
    load_checkpoint(checkpoint, resumed)
    assert_same(weights_of(resumed), saved, atol=0)
    assert optimizer_step(resumed, SAMPLES, GRPO, Pace(64)) == expected
    assert_same(weights_of(resumed), weights_of(engine), atol=0)


@pytest.mark.parametrize("zero_stage", [1])
def test_a_crash_between_the_parts_leaves_the_checkpoint_before(config: LearnerConfig, monkeypatch: pytest.MonkeyPatch):
    engine = start_engine(config)
    first = save_checkpoint(config.checkpoints, engine, 1, b"{}", keep=2)

    def crash() -> None:
        raise RuntimeError("crash")

    monkeypatch.setattr("learner.training.checkpoint._rng_state", crash)  # when DeepSpeed's part is written
    with pytest.raises(RuntimeError, match="crash"):
        save_checkpoint(config.checkpoints, engine, 1, b"{}", keep=2)
    assert newest_checkpoint(config.checkpoints) == first
    load_checkpoint(first, engine)


@pytest.mark.parametrize("zero_stage", [1])
def test_the_newest_checkpoints_are_kept_and_a_higher_incarnation_is_newer(config: LearnerConfig):
    engine = start_engine(config)
    for incarnation in (1, 1, 1, 2):
        save_checkpoint(config.checkpoints, engine, incarnation, b"{}", keep=2)
    names = sorted(path.name for path in config.checkpoints.iterdir())
    assert names == ["checkpoint-000001-000003", "checkpoint-000002-000001"]
    assert newest_checkpoint(config.checkpoints) == config.checkpoints / "checkpoint-000002-000001"


@pytest.mark.parametrize("zero_stage", [1])
def test_a_learner_superseded_while_it_saves_leaves_no_checkpoint(config: LearnerConfig):
    engine = start_engine(config)
    incarnation = take_incarnation(config.checkpoints)
    take_incarnation(config.checkpoints)
    with pytest.raises(Superseded):
        save_checkpoint(config.checkpoints, engine, incarnation, b"{}", keep=2)
    assert newest_checkpoint(config.checkpoints) is None


@pytest.mark.parametrize("zero_stage", [1])
def test_an_abandoned_step_changes_no_weight(config: LearnerConfig):
    engine = start_engine(config)
    before = weights_of(engine)
    looks = iter([False, True])
    with pytest.raises(StepAbandoned):
        optimizer_step(engine, SAMPLES, GRPO, Pace(20), abandoned=lambda: next(looks))
    assert_same(weights_of(engine), before, atol=0)


def test_samples_are_not_all_alike():
    assert len({len(sample.token_ids) for sample in SAMPLES}) > 2
    assert all(isinstance(sample, Sample) for sample in SAMPLES)
