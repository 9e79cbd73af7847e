"""A run that trained on nothing, and a measurement that measured nothing, fail and say why."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from headwater.errors import NothingMeasured, NothingTrained
from headwater.files.run_directory import RunDirectory
from headwater.measure.evaluate import check_measured, results
from headwater.report.report import read_run
from headwater.report.summary import summarise
from headwater.report.trained import check_trained
from schemas import Outcome
from tests.ledger_lines import ended


def check_run(path: Path, outcomes: list[tuple[Outcome, int]]) -> None:
    """Check a run whose groups ended so, each in the learner's life of that number."""
    directory = RunDirectory(path)
    directory.create()
    lines = [ended(number, outcome, incarnation=incarnation) for number, (outcome, incarnation) in enumerate(outcomes)]
    directory.ledger.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    check_trained(summarise("run", read_run(directory)), directory.logs)


def test_one_trained_group_is_enough(tmp_path: Path):
    check_run(tmp_path, [(Outcome.ZERO_SPREAD, 1), (Outcome.TRAINED, 1), (Outcome.ZERO_SPREAD, 2)])


def test_every_group_without_spread(tmp_path: Path):
    with pytest.raises(NothingTrained, match=r"all 4 groups .*\(1 run_ended, 3 zero_spread\)\. .*the same reward"):
        check_run(tmp_path, [(Outcome.ZERO_SPREAD, 1)] * 3 + [(Outcome.RUN_ENDED, 1)])


def test_no_group_at_all(tmp_path: Path):
    with pytest.raises(NothingTrained, match="no prompt was admitted"):
        check_run(tmp_path, [])


def test_every_reason_that_can_be_the_most_frequent_says_what_to_do(tmp_path: Path):
    for outcome in set(Outcome) - {Outcome.TRAINED}:
        with pytest.raises(NothingTrained, match=rf"\(1 {outcome}\)\. \w"):
            check_run(tmp_path / outcome, [(outcome, 1)])


def dropped(prompt: str, detail: str) -> dict[str, Any]:
    return {"domain": "a", "prompt_id": prompt, "epoch": 0, "dropped": "poisoned", "detail": detail}


def answered(prompt: str, rewards: list[float | None], temperature: float) -> dict[str, Any]:
    members = [
        {"reward": reward, "unscorable": None if reward is not None else "no jail", "completion_tokens": 3}
        for reward in rewards
    ]
    return {"domain": "a", "prompt_id": prompt, "epoch": 0, "temperature": temperature, "members": members}


def test_what_was_left_out_is_counted_beside_what_was_measured():
    lines = [
        answered("p1", [1.0, 0.0], 1.0),
        answered("p1-greedy", [None], 0.0),
        dropped("p2", "outside"),
        dropped("p3", "outside"),
        dropped("p2-greedy", "outside"),
    ]
    sampling = {row["sampling"]: row for row in results(lines)}
    assert [(row["answers"], row["unscorable"], row["left_out"]) for row in sampling.values()] == [(2, 0, 2), (0, 1, 1)]
    check_measured(lines, results(lines))


def test_a_measurement_of_nothing_fails_with_the_reasons():
    lines = [dropped("p1", "token 99 is outside"), dropped("p2", "token 99 is outside"), answered("p3", [None], 1.0)]
    with pytest.raises(NothingMeasured, match=r"of 3 groups .*2× poisoned: token 99 is outside; 1× no jail"):
        check_measured(lines, results(lines))
