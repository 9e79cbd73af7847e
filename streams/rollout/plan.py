"""The rollout worker's decisions: what of a generation is left to sample, and what a sample is on the log. Pure."""

from collections.abc import Mapping

from schemas import FinishReason, Generation, PolicyVersion, Rollout, Task, TokenSpan, Unscorable, UnscorableReason
from schemas.ids import rollout_digest, rollout_id
from schemas.tokens import pack_logprobs, pack_token_ids
from schemas.topics import ROLLOUTS
from streams.rollout.engines.base import Completion
from wire.kafka.records import Outgoing


def remaining_samples(generation: Generation, found: Mapping[str, set[int]]) -> list[int]:
    """The sample indices that are not on the log yet, rising (invariant 2)."""
    done = found.get(generation.group_id, set())
    return [index for index in range(generation.num_samples) if index not in done]


def is_too_late(generation: Generation, now: float) -> bool:
    """Whether collect has ended the group by its deadline: sampling it would be for nothing. `now`: Unix seconds."""
    return now >= generation.admitted_at + generation.deadline_seconds


def rollout_of(
    generation: Generation,
    generation_offset: int,
    prompt_token_ids: list[int],
    completion: Completion,
    *,
    attempt: int = 1,
) -> Outgoing:
    """A finished sample as the event that the loss will see: tokens as the engine had them (invariants 8, 9)."""
    spans = (
        TokenSpan(token_ids=pack_token_ids(prompt_token_ids)),
        *(
            TokenSpan(
                token_ids=pack_token_ids(span.token_ids),
                logprobs=pack_logprobs(span.logprobs),
                trainable=True,
                policy_version=PolicyVersion(span.incarnation, span.version),
            )
            for span in completion.spans
        ),
    )
    return _outgoing(
        generation,
        generation_offset,
        completion.sample_index,
        spans=spans,
        text=completion.text,
        finish_reason=FinishReason(completion.finish_reason),
        attempt=attempt,
    )


def unscorable_rollout(
    generation: Generation, generation_offset: int, sample_index: int, reason: UnscorableReason, detail: str = ""
) -> Outgoing:
    """A sample that could not be had (`too_long`, `poisoned`, …): the failure goes down the path (invariant 3)."""
    return _outgoing(generation, generation_offset, sample_index, unscorable=Unscorable(reason, detail))


def _outgoing(
    generation: Generation,
    generation_offset: int,
    sample_index: int,
    *,
    spans: tuple[TokenSpan, ...] = (),
    text: str = "",
    finish_reason: FinishReason = FinishReason.STOP,
    unscorable: Unscorable | None = None,
    attempt: int = 1,
) -> Outgoing:
    rollout = Rollout(
        run_id=generation.run_id,
        purpose=generation.purpose,
        trace_id=generation.trace_id,
        rollout_id=rollout_id(generation.group_id, sample_index),
        group_id=generation.group_id,
        sample_index=sample_index,
        num_samples=generation.num_samples,
        task=Task(
            prompt_id=generation.prompt_id,
            domain=generation.domain,
            grader=generation.grader,
            epoch=generation.epoch,
            metadata=generation.metadata,
        ),
        spans=spans,
        text=text,
        finish_reason=finish_reason,
        # no tokens: the reason stands for the content
        digest=rollout_digest(spans, text if unscorable is None else unscorable.reason),
        generation_offset=generation_offset,
        admission_number=generation.admission_number,
        source=generation.source,
        unscorable=unscorable,
        attempt=attempt,
    )
    return Outgoing(ROLLOUTS.name, generation.group_id, rollout)
