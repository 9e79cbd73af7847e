"""Whether a run that is over has trained on anything: with exit status 0 nobody would look."""

from pathlib import Path
from typing import Any

from headwater.errors import NothingTrained
from schemas import Outcome

_WHAT_TO_DO = {
    Outcome.ZERO_SPREAD: "all answers to a prompt got the same reward, and teach nothing: take easier or harder "
    "prompts, or a higher temperature",
    Outcome.POISONED: "these prompts cannot be asked of this model, or their answers not be trained on: "
    "logs/rollout.log and logs/learner.log say why",
    Outcome.DEADLINE: "sampling and grading took longer than sampling.deadline_seconds",
    Outcome.TOO_LONG: "the prompts leave no room for an answer in the model's context",
    Outcome.BELOW_MINIMUM: "fewer than two answers a group could be graded: `headwater rewards` says why",
    Outcome.STALE: "sampling took so long that the weights were too old: raise training.max_staleness",
    Outcome.STEP_SKIPPED: "no update was finite: lower training.learning_rate",
}


def check_trained(summary: dict[str, Any], logs: Path) -> None:
    """Raise NothingTrained, with how the groups of a run's summary ended and what to do about the most frequent way."""
    if summary["groups_trained"]:
        return
    ended: dict[str, int] = summary["groups_dropped"]
    if not ended:
        raise NothingTrained(f"nothing was trained on: no prompt was admitted; the logs are in {logs}")
    most = max(ended, key=lambda outcome: ended[outcome])
    counts = ", ".join(f"{count} {outcome}" for outcome, count in ended.items())
    advice = _WHAT_TO_DO.get(Outcome(most), f"the logs are in {logs}")
    raise NothingTrained(
        f"nothing was trained on: all {sum(ended.values())} groups ended otherwise ({counts}). {advice}"
    )
