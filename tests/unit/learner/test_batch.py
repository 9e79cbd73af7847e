import numpy as np
import torch

from learner.algorithms.grpo import Grpo
from learner.training.batch import collate, micro_batches, pack
from learner.training.samples import Sample, samples_of
from tests.learner_support import trajectory

GRPO = Grpo(0.2, 0.28)


def sample(prompt: list[int], answer: list[int], observed: tuple[int, ...] = ()) -> Sample:
    token_ids = np.array(prompt + answer, dtype=np.int32)
    trainable = np.array([False] * len(prompt) + [index not in observed for index in range(len(answer))])
    logprobs = np.where(trainable, -token_ids / 10, 0).astype(np.float32)
    ages = np.zeros(len(token_ids), np.int32)
    return Sample(token_ids, trainable, logprobs, ages, advantage=float(answer[0]), temperature=1.0)


def test_answers_to_one_prompt_share_a_row():
    rows = pack([sample([1, 2], [5, 6]), sample([9, 2], [7, 8]), sample([1, 2], [7])], max_tokens=100)
    assert [[len(sample.token_ids) for sample in row.samples] for row in rows] == [[4, 3], [4]]
    # prompt once, and the last token of an answer predicts nothing
    assert [row.tokens for row in rows] == [2 + 1 + 0, 2 + 1]


def test_a_full_row_is_followed_by_another():
    alike = [sample([1, 2], [5] * 4) for _ in range(5)]
    assert [len(row.samples) for row in pack(alike, max_tokens=2 + 2 * 3)] == [2, 2, 1]
    assert [len(row.samples) for row in pack(alike, max_tokens=0)] == [1] * 5


def test_micro_batches_keep_to_the_budget_and_lose_nothing():
    rows = pack([sample([1], [2] * length) for length in (3, 30, 7, 5, 9, 100)], max_tokens=0)
    parts = list(micro_batches(rows, lambda: 40))
    assert sorted(row.tokens for part in parts for row in part) == [3, 5, 7, 9, 30, 100]
    for part in parts:
        assert len(part) == 1 or len(part) * max(row.tokens for row in part) <= 40
    assert [[row.tokens for row in part] for part in parts] == [[100], [30], [9, 7, 5, 3]]
    bounds = iter([10, 60, 7, 10])  # it may change from one to the next
    parts = micro_batches(rows, lambda: next(bounds))
    assert [[row.tokens for row in part] for part in parts] == [[100], [30, 9], [7], [5, 3]]


def test_alone_each_answer_is_a_plain_causal_row():
    batch = collate(pack([sample([1, 2], [5, 6, 7], observed=(1,)), sample([3], [4])], max_tokens=0))
    assert batch.input_ids.tolist() == [[1, 2, 5, 6], [3, 0, 0, 0]]
    assert batch.position_ids is None
    assert batch.attention_mask is None
    assert batch.rows.tolist() == [0, 0, 1]
    assert batch.columns.tolist() == [1, 3, 0]
    assert batch.token_ids.tolist() == [5, 7, 4]
    torch.testing.assert_close(batch.behaviour_logprobs, torch.tensor([-0.5, -0.7, -0.4]))
    assert batch.advantages.tolist() == [5.0, 5.0, 4.0]


def test_in_a_shared_row_an_answer_sees_the_prompt_and_itself():
    batch = collate(pack([sample([1, 2], [5, 6]), sample([1, 2], [7, 8, 9])], max_tokens=100))
    assert batch.input_ids.tolist() == [[1, 2, 5, 7, 8]]
    assert batch.position_ids is not None
    assert batch.position_ids.tolist() == [[0, 1, 2, 2, 3]]
    assert batch.attention_mask is not None
    assert batch.attention_mask[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 1],
    ]
    # both first tokens are predicted from the prompt's last
    assert batch.columns.tolist() == [1, 2, 1, 3, 4]
    assert batch.token_ids.tolist() == [5, 6, 7, 8, 9]


def test_every_trainable_token_of_real_groups_is_there_once():
    samples = samples_of([trajectory(number) for number in range(5)], GRPO, lambda _: 0)
    for max_tokens in (0, 20, 1000):
        batch = collate(pack(samples, max_tokens))
        assert len(batch.token_ids) == sum(sample.trainable_tokens for sample in samples)
        assert len(set(zip(batch.rows.tolist(), batch.columns.tolist(), batch.token_ids.tolist(), strict=True))) > 0
        assert batch.columns.min() >= 0
        assert batch.columns.max() < batch.input_ids.shape[1]
