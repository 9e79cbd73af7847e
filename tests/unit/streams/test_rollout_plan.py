"""What is left to sample, and a sample as an event."""

from schemas import FinishReason, PolicyVersion, Rollout, Unscorable, UnscorableReason
from schemas.ids import rollout_digest
from schemas.tokens import unpack_logprobs, unpack_token_ids
from streams.rollout.engines.base import Completion, Span
from streams.rollout.plan import is_too_late, remaining_samples, rollout_of, unscorable_rollout
from tests.unit.streams.events import generation

COMPLETION = Completion("g", 1, [Span([5, 6], [-0.5, -1.0], 1, 3), Span([7], [-2.0], 1, 4)], "4", "length")


def test_only_what_is_not_on_the_log_is_sampled() -> None:
    found = {"g": {1}, "other": {0}}
    assert remaining_samples(generation(num_samples=3), found) == [0, 2]
    assert remaining_samples(generation(num_samples=2), {}) == [0, 1]


def test_tokens_are_carried_as_the_engine_had_them() -> None:
    out = rollout_of(generation(), 17, [1, 2], COMPLETION)
    event = out.event
    assert isinstance(event, Rollout)
    prompt, first, second = event.spans
    assert (unpack_token_ids(prompt.token_ids), prompt.trainable, prompt.policy_version) == ([1, 2], False, None)
    assert (unpack_token_ids(first.token_ids), unpack_logprobs(first.logprobs)) == ([5, 6], [-0.5, -1.0])
    assert (first.policy_version, second.policy_version) == (PolicyVersion(1, 3), PolicyVersion(1, 4))
    assert (event.rollout_id, event.sample_index, event.generation_offset) == ("g-1", 1, 17)
    assert (event.finish_reason, event.digest) == (FinishReason.LENGTH, rollout_digest(event.spans, "4"))
    assert (out.topic, out.key, event.task.prompt_id) == ("rollouts", "g", "g-prompt")


def test_the_same_sample_has_the_same_id_and_other_tokens_another_digest() -> None:
    other = Completion("g", 1, [Span([5, 9], [-0.5, -1.0], 1, 3)], "4", "length")
    first, second = (rollout_of(generation(), 0, [1], completion).event for completion in (COMPLETION, other))
    assert isinstance(first, Rollout)
    assert isinstance(second, Rollout)
    assert first.rollout_id == second.rollout_id
    assert first.digest != second.digest


def test_a_failure_to_sample_goes_down_the_path() -> None:
    event = unscorable_rollout(generation(), 17, 0, UnscorableReason.TOO_LONG).event
    assert isinstance(event, Rollout)
    assert (event.unscorable, event.spans, event.generation_offset, event.sample_index) == (
        Unscorable(UnscorableReason.TOO_LONG), (), 17, 0,
    )  # fmt: skip
    assert event.digest


def test_too_late_is_when_collect_ends_the_group() -> None:
    group = generation(admitted_at=50.0, deadline_seconds=100.0)
    assert not is_too_late(group, 149.9)
    assert is_too_late(group, 150.0)
