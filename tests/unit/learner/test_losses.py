import torch

from learner.algorithms.losses import clipped, log_ratio, ppo_clip, token_mean
from tests.rl_math import Case, assert_close, both_precisions, cases, mask, tensor


def is_token_mean(case: Case) -> bool:
    return case.params["aggregation"] == "token_mean"


def check_ppo_clip(case: Case, dtype: torch.dtype, absolute: float | None = None) -> None:
    valid = mask(case.inputs["mask"])
    new = tensor(case.inputs["logp_new"], dtype, grad=True)
    token_loss = ppo_clip(
        new,
        tensor(case.inputs["logp_old"], dtype),
        tensor(case.inputs["advantages"], dtype),
        valid,
        clip_low=case.params["eps_low"],
        clip_high=case.params["eps_high"],
        dual_clip=case.params["dual_clip_c"],
        log_ratio_bound=case.params.get("log_ratio_clamp", 20.0),
    )
    loss = token_mean(token_loss, valid, float(valid.sum()))
    loss.backward()
    assert new.grad is not None
    assert_close(token_loss, case.expected["token_loss"], dtype, absolute)
    assert_close(loss, case.expected["loss"], dtype, absolute)
    assert_close(new.grad, case.expected["grad_logp_new"], dtype, absolute)


@cases("policy_losses", "ppo_clip", "dapo", where=is_token_mean)
@both_precisions
def test_ppo_clip_has_the_check_values(case: Case, dtype: torch.dtype):
    check_ppo_clip(case, dtype)


@cases("numerical_safety", "ppo_clip", "dapo", where=is_token_mean)
@both_precisions
def test_ppo_clip_is_safe_against_huge_ratios_and_garbage(case: Case, dtype: torch.dtype):
    check_ppo_clip(case, dtype, absolute=None if "log_ratio_clamp" in case.params else 1e-6)


@cases("policy_losses", "ppo_clip_microbatch", where=is_token_mean)
@both_precisions
def test_any_cut_of_a_batch_gives_its_loss_and_gradient(case: Case, dtype: torch.dtype):
    valid = mask(case.inputs["mask"])
    new = tensor(case.inputs["logp_new"], dtype, grad=True)
    old, advantages = tensor(case.inputs["logp_old"], dtype), tensor(case.inputs["advantages"], dtype)
    start = 0
    contributions: list[float] = []
    for rows in case.inputs["micro_batches"]:
        part = slice(start, start + rows)
        losses = ppo_clip(
            new[part],
            old[part],
            advantages[part],
            valid[part],
            clip_low=case.params["eps_low"],
            clip_high=case.params["eps_high"],
            dual_clip=case.params["dual_clip_c"],
        )
        contribution = token_mean(losses, valid[part], float(valid.sum()))
        contribution.backward()
        contributions.append(contribution.item())
        start += rows
    assert new.grad is not None
    assert_close(torch.tensor(contributions, dtype=dtype), case.expected["contributions"], dtype)
    assert_close(sum(contributions), case.expected["loss"], dtype)
    assert_close(new.grad, case.expected["grad_logp_new"], dtype)


@cases("aggregation", "aggregate", where=is_token_mean)
@both_precisions
def test_token_mean_has_the_check_values(case: Case, dtype: torch.dtype):
    check_token_mean(case, dtype)


@cases("numerical_safety", "aggregate", where=is_token_mean)
@both_precisions
def test_token_mean_selects_and_does_not_multiply(case: Case, dtype: torch.dtype):
    check_token_mean(case, dtype)


def check_token_mean(case: Case, dtype: torch.dtype) -> None:
    losses = tensor(case.inputs["token_loss"], dtype, grad=True)
    valid = mask(case.inputs["mask"])
    loss = token_mean(losses, valid, float(valid.sum()))
    loss.backward()
    assert losses.grad is not None
    assert_close(loss, case.expected["loss"], dtype)
    assert_close(losses.grad, case.expected["grad_token_loss"], dtype)


@cases("aggregation", "aggregate_microbatch", where=is_token_mean)
@both_precisions
def test_token_mean_of_parts_adds_up(case: Case, dtype: torch.dtype):
    losses, valid = tensor(case.inputs["token_loss"], dtype), mask(case.inputs["mask"])
    start, contributions = 0, list[float]()
    for rows in case.inputs["micro_batches"]:
        part = slice(start, start + rows)
        contributions.append(float(token_mean(losses[part], valid[part], float(valid.sum()))))
        start += rows
    assert_close(torch.tensor(contributions, dtype=dtype), case.expected["contributions"], dtype)
    assert_close(sum(contributions), case.expected["loss"], dtype)


def test_clipped_says_where_the_gradient_is_zero():
    new = torch.linspace(-1, 1, 41, requires_grad=True)
    old, valid = torch.zeros(41), torch.ones(41, dtype=torch.bool)
    for sign in (1.0, -1.0):
        advantages = torch.full((41,), sign)
        new.grad = None
        ppo_clip(new, old, advantages, valid, clip_low=0.2, clip_high=0.28).sum().backward()
        assert new.grad is not None
        ratio = log_ratio(new, old, valid).exp()
        assert torch.equal(clipped(ratio, advantages, clip_low=0.2, clip_high=0.28), new.grad == 0)
