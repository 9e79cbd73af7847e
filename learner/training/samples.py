"""From a group's carried bytes to samples to train on. Nothing is tokenised or recomputed here (invariant 9)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from learner.algorithms.base import Algorithm
from schemas import DropReason, Event, GroupDropped, Member, PolicyVersion, Trajectory


@dataclass(frozen=True, slots=True)
class Sample:
    """One member to train on. The four arrays have one entry a token of the whole sequence."""

    token_ids: NDArray[np.int32]
    trainable: NDArray[np.bool_]
    """Tokens the policy sampled; prompt and observation tokens are False."""
    behaviour_logprobs: NDArray[np.float32]
    """0 where not trainable."""
    ages: NDArray[np.int32]
    """Updates since the weights that sampled the token; 0 where not trainable."""
    advantage: float
    temperature: float

    @property
    def trainable_tokens(self) -> int:
        return int(self.trainable.sum())

    @property
    def prompt_tokens(self) -> int:
        """Tokens before the first trainable one; at least 1."""
        return int(self.trainable.argmax())


def defect(trajectory: Trajectory, vocabulary: int) -> str | None:
    """Why this group cannot be trained on, or None. Such a one would stop the learner again at every start."""
    if all(member.reward is None for member in trajectory.members):
        return "no member has a reward"
    if trajectory.temperature <= 0:
        return "sampled at temperature 0: greedy tokens have no log-probs to compare with"
    for member in trajectory.members:
        if member.reward is None:
            continue
        problem = _member_defect(member, vocabulary)
        if problem:
            return f"sample {member.sample_index}: {problem}"
    return None


def _member_defect(member: Member, vocabulary: int) -> str | None:
    if not any(span.trainable and span.token_ids for span in member.spans):
        return "no trainable token"
    if any(
        len(span.token_ids) % 4 or (span.trainable and len(span.logprobs) != len(span.token_ids))
        for span in member.spans
    ):
        return "a span whose log-probs are not one a token"
    sequence = _sequence(member)
    if sequence.trainable[0]:
        return "its first token is trainable, but nothing predicts it"
    if sequence.token_ids.min() < 0 or sequence.token_ids.max() >= vocabulary:
        return f"a token id outside the vocabulary of {vocabulary}"
    if not np.isfinite(sequence.behaviour_logprobs).all():
        return "a log-prob that is not finite"
    return None


def usable(event: Event, vocabulary: int) -> Event:
    """The event itself, or for a trajectory that cannot be trained on, the end `poisoned` in its place."""
    if not isinstance(event, Trajectory):
        return event
    problem = defect(event, vocabulary)
    if problem is None:
        return event
    return GroupDropped(
        run_id=event.run_id,
        trace_id=event.trace_id,
        group_id=event.group_id,
        log_id=event.log_id,
        admission_number=event.admission_number,
        domain=event.domain,
        prompt_id=event.prompt_id,
        epoch=event.epoch,
        reason=DropReason.POISONED,
        detail=problem,
        source=event.source,
    )


def samples_of(groups: Sequence[Trajectory], algorithm: Algorithm, age: Callable[[PolicyVersion], int]) -> list[Sample]:
    """The scorable members of all groups with their advantages. The unscorable are in no baseline and no loss.

    `age`: updates since a version.
    """
    samples: list[Sample] = []
    for group in groups:
        scorable = torch.tensor([member.reward is not None for member in group.members])
        rewards = torch.tensor([member.reward or 0.0 for member in group.members], dtype=torch.float64)
        for member, advantage in zip(group.members, algorithm.advantages(rewards, scorable).tolist(), strict=True):
            if member.reward is None:
                continue
            sequence = _sequence(member)
            samples.append(
                Sample(
                    sequence.token_ids,
                    sequence.trainable,
                    sequence.behaviour_logprobs,
                    _ages(member, age),
                    advantage=advantage,
                    temperature=group.temperature,
                )
            )
    return samples


@dataclass(frozen=True, slots=True)
class _Sequence:
    token_ids: NDArray[np.int32]
    trainable: NDArray[np.bool_]
    behaviour_logprobs: NDArray[np.float32]


def _sequence(member: Member) -> _Sequence:
    token_ids = np.frombuffer(b"".join(span.token_ids for span in member.spans), dtype="<i4")
    trainable = np.zeros(len(token_ids), dtype=np.bool_)
    logprobs = np.zeros(len(token_ids), dtype=np.float32)
    start = 0
    for span in member.spans:
        end = start + len(span.token_ids) // 4
        if span.trainable:
            trainable[start:end] = True
            logprobs[start:end] = np.frombuffer(span.logprobs, dtype="<f4")
        start = end
    return _Sequence(token_ids, trainable, logprobs)


def _ages(member: Member, age: Callable[[PolicyVersion], int]) -> NDArray[np.int32]:
    ages = [age(span.policy_version) if span.policy_version is not None else 0 for span in member.spans]
    return np.repeat(np.array(ages, dtype=np.int32), [len(span.token_ids) // 4 for span in member.spans])
