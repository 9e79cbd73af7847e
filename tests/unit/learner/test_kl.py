import torch

from learner.algorithms.kl import k3
from learner.algorithms.losses import token_mean
from tests.rl_math import Case, assert_close, both_precisions, cases, mask, tensor


def check_k3(case: Case, dtype: torch.dtype) -> None:
    new, valid = tensor(case.inputs["logp_new"], dtype, grad=True), mask(case.inputs["mask"])
    per_token = k3(new, tensor(case.inputs["logp_ref"], dtype), valid, case.params.get("log_ratio_clamp"))
    loss = token_mean(per_token, valid, float(valid.sum()))
    loss.backward()
    assert new.grad is not None
    assert_close(per_token, case.expected["per_token"], dtype)
    assert_close(loss, case.expected["loss"], dtype)
    assert_close(new.grad, case.expected["grad_logp_new"], dtype)


@cases("kl", "kl_k3", where=lambda case: case.params["aggregation"] == "token_mean")
@both_precisions
def test_k3_has_the_check_values(case: Case, dtype: torch.dtype):
    check_k3(case, dtype)


@cases("numerical_safety", "kl_k3", where=lambda case: case.params["aggregation"] == "token_mean")
@both_precisions
def test_k3_is_safe_against_huge_ratios_and_garbage(case: Case, dtype: torch.dtype):
    check_k3(case, dtype)
