import torch

from learner.algorithms.grpo import grpo
from tests.rl_math import Case, assert_close, both_precisions, cases


@cases("advantages", "grpo")
@both_precisions
def test_grpo_has_the_check_values(case: Case, dtype: torch.dtype):
    for rewards, advantages, valid in zip(
        case.inputs["rewards"], case.expected["advantages"], case.expected["valid"], strict=True
    ):
        scorable = torch.tensor([reward is not None for reward in rewards], dtype=torch.bool)
        values = torch.tensor([float("nan") if reward is None else reward for reward in rewards], dtype=dtype)
        assert scorable.tolist() == [bool(flag) for flag in valid]
        assert_close(grpo(values, scorable, case.params["eps"]), advantages, dtype)


def test_a_group_without_spread_is_exactly_zero():
    # 0.1 summed three times and divided is not 0.1
    advantages = grpo(torch.full((3,), 0.1), torch.ones(3, dtype=torch.bool))
    assert advantages.tolist() == [0.0, 0.0, 0.0]


def test_a_singleton_has_no_advantage():
    assert grpo(torch.tensor([5.0, float("nan")]), torch.tensor([True, False])).tolist() == [0.0, 0.0]
