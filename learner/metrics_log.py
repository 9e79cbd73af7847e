"""`metrics.jsonl`: one line an update, for the live screen and the report."""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import msgspec

from learner.book.feed import Batch
from learner.book.stored import METRICS
from learner.training.probe import Publication
from learner.training.step import StepResult
from learner.watch import Causes
from schemas import PolicyVersion
from wire.metrics import Metrics


class UpdateSeconds(msgspec.Struct, kw_only=True):
    """Where the time between two updates went."""

    wait: float = 0.0
    """For rollouts: the learner was idle."""
    step: float = 0.0
    publish: float = 0.0
    checkpoint: float = 0.0

    @property
    def total(self) -> float:
        return self.wait + self.step + self.publish + self.checkpoint


def update_line(
    version: PolicyVersion,
    batch: Batch,
    result: StepResult,
    seconds: UpdateSeconds,
    *,
    causes: Causes,
    publication: Publication | None,
    warnings: Sequence[str],
    groups_dropped: int,
    now: float,
) -> dict[str, Any]:
    """One update in numbers. `groups_dropped` since the line before; a NaN or Inf is written as null.

    `publication`: of the snapshot that the update made, if it made one.
    """
    rewards: dict[str, list[float]] = defaultdict(list)
    lengths: list[int] = []
    for group in batch.groups:
        for member in group.members:
            if member.reward is not None:
                rewards[group.domain].append(member.reward)
                lengths.append(sum(len(span.token_ids) // 4 for span in member.spans if span.trainable))
    everything = [reward for of_domain in rewards.values() for reward in of_domain]
    return {
        "time": now,
        "incarnation": version.incarnation,
        "version": version.version,
        "applied": result.applied,
        "loss": result.loss,
        "grad_norm": result.grad_norm,
        "learning_rate": result.learning_rate,
        "kl": result.mismatch_kl,
        "kl_engine": causes.engine,
        "kl_rounding": causes.rounding,
        "kl_staleness": causes.staleness,
        "publish_kl": publication and publication.kl,
        "step_kl": publication and publication.step_kl,
        "published_changed": publication and publication.changed,
        "entropy": result.entropy,
        "ratio_mean": result.ratio_mean,
        "ratio_min": result.ratio_min,
        "ratio_max": result.ratio_max,
        "clip_fraction": result.clip_fraction,
        "reward_mean": _mean(everything),
        "reward_mean_by_domain": {domain: _mean(of_domain) for domain, of_domain in sorted(rewards.items())},
        "completion_tokens_mean": _mean([float(length) for length in lengths]),
        "groups": len(batch.groups),
        "rollouts": len(lengths),
        "groups_dropped": groups_dropped,
        "staleness_max": max(batch.ages),
        "staleness_mean": _mean([float(age) for age in batch.ages]),
        "tokens": result.tokens,
        "trainable_tokens": result.trainable_tokens,
        "micro_batches": result.micro_batches,
        "longest_micro_batch_seconds": result.longest_micro_batch_seconds,
        "seconds": msgspec.to_builtins(seconds),
        "learner_idle_share": seconds.wait / seconds.total if seconds.total else 0.0,
        "warnings": list(warnings),
    }


def show(
    metrics: Metrics,
    batch: Batch,
    result: StepResult,
    seconds: UpdateSeconds,
    causes: Causes,
    publication: Publication | None,
) -> None:
    """The same on /metrics."""
    metrics.step_seconds.observe(seconds.step)
    metrics.wait_seconds.inc(seconds.wait)
    metrics.micro_batch_seconds.set(result.longest_micro_batch_seconds)
    if publication is not None:
        metrics.publish_kl.set(publication.kl)
    if not result.applied:
        metrics.steps_skipped.inc()
        return
    metrics.loss.set(result.loss)
    metrics.gradient_norm.set(result.grad_norm)
    for cause, value in asdict(causes).items():
        if value is not None:
            metrics.mismatch_kl.labels(cause).set(value)
    for age in batch.ages:
        metrics.staleness.observe(age)


class MetricsLog:
    """The open file. A resume appends: of a version with several lines, that of the highest incarnation counts."""

    def __init__(self, run_directory: Path) -> None:
        path = run_directory / METRICS
        _end_torn_line(path)
        self._file: IO[bytes] = path.open("ab")

    def append(self, line: dict[str, Any]) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _end_torn_line(path: Path) -> None:
    """A learner that was killed in the middle of a line must not spoil the next one."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            content = path.read_bytes()
            file.truncate(content.rfind(b"\n") + 1)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
