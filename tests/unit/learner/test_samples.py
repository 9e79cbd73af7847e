import msgspec
import numpy as np
import pytest

from learner.algorithms.grpo import Grpo
from learner.training.samples import defect, samples_of, usable
from schemas import DropReason, GroupDropped, Member, PolicyVersion, TokenSpan, Trajectory
from schemas.tokens import pack_logprobs, pack_token_ids
from tests.learner_support import VOCABULARY, sampled_span, trajectory

GRPO = Grpo(0.2, 0.28)
VERSION = PolicyVersion(1, 0)
PROMPT = TokenSpan(token_ids=pack_token_ids([1, 2, 3]))


def member(*spans: TokenSpan, reward: float | None = 1.0, index: int = 0) -> Member:
    return Member(sample_index=index, digest="d", spans=spans, reward=reward)


def group(*members: Member, temperature: float = 1.0) -> Trajectory:
    return trajectory(0, members=members, temperature=temperature)


def test_tokens_and_logprobs_are_the_carried_bytes():
    observation = TokenSpan(token_ids=pack_token_ids([40, 41]))
    first = TokenSpan(
        token_ids=pack_token_ids([7, 8]),
        logprobs=pack_logprobs([-0.5, -1.25]),
        trainable=True,
        policy_version=VERSION,
    )
    second = msgspec.structs.replace(
        first, token_ids=pack_token_ids([9]), logprobs=pack_logprobs([-0.1]), policy_version=PolicyVersion(1, 2)
    )
    [sample, _] = samples_of(
        [group(member(PROMPT, first, observation, second), member(PROMPT, second, reward=0.0), temperature=0.7)],
        GRPO,
        {VERSION: 3, PolicyVersion(1, 2): 1}.__getitem__,
    )
    assert sample.token_ids.tolist() == [1, 2, 3, 7, 8, 40, 41, 9]
    assert sample.trainable.tolist() == [False] * 3 + [True] * 2 + [False] * 2 + [True]
    np.testing.assert_array_equal(sample.behaviour_logprobs[sample.trainable], np.float32([-0.5, -1.25, -0.1]))
    assert sample.ages.tolist() == [0, 0, 0, 3, 3, 0, 0, 1]
    assert (sample.trainable_tokens, sample.prompt_tokens, sample.temperature) == (3, 3, 0.7)


def test_the_unscorable_are_in_no_baseline_and_no_loss():
    samples = samples_of([trajectory(0)], GRPO, lambda _: 0)
    assert len(samples) == 3
    assert [sample.advantage for sample in samples] == pytest.approx([1.0, 0.0, -1.0], abs=1e-5)


def test_a_good_group_is_left_as_it_is():
    good = trajectory(0)
    assert defect(good, VOCABULARY) is None
    assert usable(good, VOCABULARY) is good


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (group(member(PROMPT)), "no trainable token"),
        (group(member(sampled_span([5], VERSION))), "first token is trainable"),
        (group(member(PROMPT, sampled_span([VOCABULARY], VERSION))), "vocabulary"),
        (group(member(PROMPT, sampled_span([-1], VERSION))), "vocabulary"),
        (
            group(member(PROMPT, TokenSpan(token_ids=pack_token_ids([5, 6]), logprobs=b"\0" * 4, trainable=True))),
            "one a token",
        ),
        (group(member(PROMPT, TokenSpan(token_ids=b"\0" * 5))), "no trainable token"),
        (
            group(
                member(
                    PROMPT,
                    TokenSpan(token_ids=pack_token_ids([5]), logprobs=pack_logprobs([float("nan")]), trainable=True),
                )
            ),
            "not finite",
        ),
        (group(member(PROMPT, sampled_span([5], VERSION)), temperature=0.0), "temperature 0"),
        (group(member(PROMPT, sampled_span([5], VERSION), reward=None)), "no member has a reward"),
    ],
)
def test_a_group_that_cannot_be_trained_on_ends_as_poisoned(bad: Trajectory, words: str):
    end = usable(bad, VOCABULARY)
    assert isinstance(end, GroupDropped)
    assert end.reason == DropReason.POISONED
    assert words in end.detail
    assert (end.admission_number, end.log_id, end.source) == (bad.admission_number, bad.log_id, bad.source)
