"""The figures of a run, from its files: pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.config.run_config import RunConfig
from headwater.files.phases import TRAINING, seconds_in
from headwater.measure.held_out import HELD_OUT
from learner.book.feed import Ended
from learner.book.ledger import check_ledger
from learner.book.position import Position
from schemas import DrainReason, Outcome

type Line = dict[str, Any]
"""A line of one of the run's JSONL files."""

CAUSES = ("engine", "rounding", "staleness")
"""What a step's mismatch is made of: KL(sampler ‖ trained) in nats."""
FULL_REWARD = 1.0
"""A rollout with it passed every test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """What a run has left behind."""

    updates: Sequence[Line]
    """The surviving lineage of metrics.jsonl."""
    ledger: Sequence[Ended]
    evaluations: Sequence[Line]
    phases: Sequence[Line]
    position: Position | None
    stage_seconds: dict[str, float]
    """Of the hops: seconds spent handling, as they counted themselves."""
    config: RunConfig | None
    """None: its file is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One set of evaluation answers."""

    prompts: int
    answers: int
    """Scorable ones."""
    unscorable: int
    mean_reward: float | None
    pass_rate: float | None
    mean_tokens: float | None


def figures(evaluations: Iterable[Line], *, domain: str, epoch: int, greedy: bool) -> Figures:
    """The held-out results of one domain, at temperature 0 or above. Unscorable answers are counted, not averaged."""
    groups = [
        line
        for line in evaluations
        if line["domain"] == domain
        and line["epoch"] == epoch
        and "members" in line
        and (line["temperature"] == 0) == greedy
    ]
    members = [member for group in groups for member in group["members"]]
    scorable = [member for member in members if member["reward"] is not None]
    return Figures(
        prompts=len(groups),
        answers=len(scorable),
        unscorable=len(members) - len(scorable),
        mean_reward=_mean([member["reward"] for member in scorable]),
        pass_rate=_mean([float(member["reward"] >= FULL_REWARD) for member in scorable]),
        mean_tokens=_mean([member["completion_tokens"] for member in scorable]),
    )


def summarise(run: str, files: RunFiles) -> dict[str, Any]:
    """`report/summary.json`."""
    before = figures(files.evaluations, domain=HELD_OUT, epoch=0, greedy=False)
    after = figures(files.evaluations, domain=HELD_OUT, epoch=1, greedy=False)
    position = files.position or Position()
    report = check_ledger(files.ledger, _admitted(files.ledger, position))
    outcomes = _outcomes(files.ledger)
    trained = outcomes.pop(Outcome.TRAINED, 0)
    stages = _learner_seconds(files.updates) | files.stage_seconds
    training_seconds = seconds_in(files.phases, TRAINING) or sum(sum(u["seconds"].values()) for u in files.updates)
    busy = sum(seconds for stage, seconds in stages.items() if stage in ("step", "publish", "checkpoint"))
    return {
        "run": run,
        "dtype": files.config.training.dtype if files.config else None,
        "held_out_reward_before": before.mean_reward,
        "held_out_reward_after": after.mean_reward,
        "held_out_pass_rate_before": before.pass_rate,
        "held_out_pass_rate_after": after.pass_rate,
        "updates": position.version if files.position else len(files.updates),
        "ended_by": _ended_by(position, files.config),
        "training_seconds": round(training_seconds, 1),
        "groups_admitted": report.lines + report.unaccounted,
        "groups_trained": trained,
        "groups_dropped": dict(sorted(outcomes.items())),
        "groups_trained_twice": len(report.trained_twice),
        "groups_unaccounted": report.unaccounted,
        "duplicates_dropped": position.duplicates_dropped,
        "max_staleness": position.max_staleness,
        "stage_seconds": {stage: round(seconds, 1) for stage, seconds in stages.items()},
        "learner_idle_share": round(max(0.0, 1 - busy / training_seconds), 3) if training_seconds else None,
        "publish_kl_max": max(
            (u["publish_kl"] for u in files.updates if u.get("publish_kl") is not None), default=None
        ),
        "mismatch_kl_by_cause": {cause: _mean_of(files.updates, f"kl_{cause}") for cause in CAUSES},
        "warnings": [f"update {u['version']}: {text}" for u in files.updates for text in u.get("warnings", [])],
    }


def _ended_by(position: Position, config: RunConfig | None) -> str | None:
    """`updates`, `time` or `sources`: what ended training; None while nothing has."""
    if position.drain_reason == DrainReason.SOURCES_ENDED:
        return "sources"
    if position.drain_reason != DrainReason.RUN_ENDED or config is None:
        return None
    return "updates" if position.version >= config.training.max_updates else "time"


def _admitted(ledger: Iterable[Ended], position: Position) -> dict[str, range]:
    """What the last log admitted, once it is drained; `ledger check` asks the logs themselves."""
    if position.admitted is None:
        return {}
    return {position.log_id: range(position.admitted)}


def _outcomes(ledger: Iterable[Ended]) -> dict[str, int]:
    """Of the surviving lineage: a line of a lower incarnation after one of a higher is void."""
    newest = 0
    counts: dict[str, int] = {}
    for line in ledger:
        newest = max(newest, line.incarnation)
        if line.incarnation == newest:
            counts[line.outcome] = counts.get(line.outcome, 0) + 1
    return counts


def _learner_seconds(updates: Iterable[Line]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for update in updates:
        for stage, spent in update["seconds"].items():
            seconds[stage] = seconds.get(stage, 0.0) + spent
    return seconds


def _mean_of(updates: Iterable[Line], key: str) -> float | None:
    return _mean([u[key] for u in updates if u.get(key) is not None])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
