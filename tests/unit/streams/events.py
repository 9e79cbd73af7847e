"""Short makers of the events that the stream tests need."""

from typing import Any

from schemas import (
    Cancel,
    Context,
    Drained,
    ExactGrader,
    Generation,
    Message,
    PolicyVersion,
    Progress,
    Prompt,
    Purpose,
    Reward,
    Rollout,
    Sampling,
    SourcePosition,
    Task,
    TokenSpan,
    Unscorable,
    UnscorableReason,
)  # fmt: skip
from schemas.ids import rollout_digest, rollout_id
from wire.kafka.records import Record

RUN, LOG = "run", "log"
GRADER = ExactGrader(answer="4")


def record(topic: str, offset: int, partition: int = 0, key: str | None = None) -> Record:
    return Record(topic, partition, offset, key, b"", {}, 0)


def prompt(
    name: str, purpose: Purpose = Purpose.TRAIN, domain: str = "math", group_size: int = 2, **rest: Any
) -> Prompt:
    return Prompt(
        id=name, purpose=purpose, domain=domain, group_size=group_size, grader=GRADER,
        messages=(Message(role="user", content=f"{name}?"),), **rest,
    )  # fmt: skip


def generation(
    name: str = "g", number: int | None = 0, num_samples: int = 2, min_samples: int = 1,
    purpose: Purpose = Purpose.TRAIN, admitted_at: float = 0.0, deadline_seconds: float = 100.0,
) -> Generation:  # fmt: skip
    return Generation(
        run_id=RUN, purpose=purpose, group_id=name, log_id=LOG,
        admission_number=number if purpose == Purpose.TRAIN else None, prompt_id=f"{name}-prompt", domain="math",
        messages=(Message(role="system", content="Be short."), Message(role="user", content="2+2?")), grader=GRADER,
        num_samples=num_samples, min_samples=min_samples, sampling=Sampling(temperature=0.5), admitted_at=admitted_at,
        deadline_seconds=deadline_seconds, prompt_topic="prompts.math", prompt_partition=0, prompt_offset=0,
        rollouts_end_offset=0, source=SourcePosition(source="s", index=number or 0),
    )  # fmt: skip


def rollout(
    name: str = "g", index: int = 0, text: str = "4", generation_offset: int | None = 0,
    unscorable: Unscorable | None = None, purpose: Purpose = Purpose.TRAIN,
) -> Rollout:  # fmt: skip
    spans = (
        TokenSpan(token_ids=text.encode().ljust(4, b"\0")[:4], trainable=True, policy_version=PolicyVersion(1, 0)),
    )
    return Rollout(
        run_id=RUN, purpose=purpose, rollout_id=rollout_id(name, index), group_id=name, sample_index=index,
        num_samples=2, task=Task(prompt_id=f"{name}-prompt", domain="math", grader=GRADER), spans=spans, text=text,
        digest=rollout_digest(spans, text), generation_offset=generation_offset, unscorable=unscorable,
    )  # fmt: skip


def context(answer: Rollout) -> Context:
    return Context(
        group_id=answer.group_id, sample_index=answer.sample_index, digest=answer.digest, domain="math",
        prompt_id=answer.task.prompt_id, generation_offset=answer.generation_offset, num_samples=answer.num_samples,
    )  # fmt: skip


def reward(answer: Rollout, value: float | None, unscorable: Unscorable | None = None) -> Reward:
    return Reward(run_id=RUN, purpose=answer.purpose, context=context(answer), reward=value, unscorable=unscorable)


def fault(words: str) -> Unscorable:
    return Unscorable(UnscorableReason.GRADER_FAULT, words)


def cancel(name: str = "g", reason: str = "cancelled") -> Cancel:
    return Cancel(run_id=RUN, group_id=name, reason=reason)


def drained(admitted: int, reason: str = "sources_ended") -> Drained:
    return Drained(run_id=RUN, log_id=LOG, admitted=admitted, reason=reason)


def progress(ended_low: int = 0, *ended_above: int, incarnation: int = 1, log_id: str = LOG, **rest: Any) -> Progress:
    return Progress(
        run_id=RUN, log_id=log_id, incarnation=incarnation, version=0, ended_low=ended_low, ended_above=ended_above,
        **rest,
    )  # fmt: skip
