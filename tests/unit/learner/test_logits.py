import pytest
import torch

from learner.training.logits import Head, logp_entropy, project
from tests.rl_math import Case, assert_close, both_precisions, cases, mask, tensor


@cases("logits", "logp_entropy")
@both_precisions
def test_logp_entropy_has_the_check_values(case: Case, dtype: torch.dtype):
    valid = mask(case.inputs["mask"])
    token_ids = torch.tensor(case.inputs["token_ids"])[valid]
    for wanted, name in ((0, "logp"), (1, "entropy")):
        logits = tensor(case.inputs["logits"], dtype, grad=True)
        temperature = torch.full(token_ids.shape, case.params["temperature"], dtype=dtype)
        values = logp_entropy(logits[valid], token_ids, temperature)[wanted]
        values.sum().backward()
        assert logits.grad is not None
        spread = torch.zeros(valid.shape, dtype=dtype)
        spread[valid] = values.detach()
        assert_close(spread, case.expected[name], dtype)
        assert_close(logits.grad, case.expected[f"grad_sum_{name}"], dtype)


@pytest.mark.parametrize("chunk_tokens", [100, 37, 10, 1])
def test_chunks_change_neither_values_nor_gradients(chunk_tokens: int):
    torch.manual_seed(0)
    token_ids, temperature = torch.randint(0, 50, (37,)), torch.rand(37) + 0.5
    hidden, weight = torch.randn(37, 8, requires_grad=True), torch.randn(50, 8, requires_grad=True)
    upstream = torch.randn(37)
    expected_logp, expected_entropy = logp_entropy(hidden @ weight.T, token_ids, temperature)
    expected = torch.autograd.grad((expected_logp * upstream).sum(), (hidden, weight))

    logp, entropy = project(hidden, Head(weight), token_ids, temperature, chunk_tokens)
    actual = torch.autograd.grad((logp * upstream).sum(), (hidden, weight))

    torch.testing.assert_close(logp, expected_logp)
    torch.testing.assert_close(entropy, expected_entropy)
    torch.testing.assert_close(actual, expected)
    assert not entropy.requires_grad
