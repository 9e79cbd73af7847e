"""The report's figures, from files written by hand."""

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from headwater.config.load import write_config
from headwater.errors import RunDirectoryError
from headwater.files.phases import TRAINING, phase, read_phases
from headwater.files.positions import newest_position
from headwater.files.run_directory import RunDirectory
from headwater.look.observe import read_updates
from headwater.measure.recorder import evaluation_line
from headwater.report.report import answer_pairs, read_run, write_report
from headwater.report.summary import figures, summarise
from headwater.run.demo import demo_config
from learner.book.position import NumberSet, Position
from schemas import DropReason, GroupDropped, Member, PolicyVersion, TokenSpan, Trajectory
from schemas.tokens import pack_token_ids
from tests import ledger_lines

KEYS = {
    "held_out_reward_before", "held_out_reward_after", "held_out_pass_rate_before", "held_out_pass_rate_after",
    "updates", "training_seconds", "groups_admitted", "groups_trained", "groups_dropped", "groups_trained_twice",
    "dtype", "ended_by",
    "groups_unaccounted", "duplicates_dropped", "max_staleness", "stage_seconds", "learner_idle_share",
    "publish_kl_max", "mismatch_kl_by_cause", "warnings",
}  # fmt: skip

ended = partial(ledger_lines.ended, log_id="log")


def update(version: int, incarnation: int = 1, reward: float = 0.0) -> dict[str, Any]:
    return {
        "incarnation": incarnation,
        "version": version,
        "kl": 0.001,
        "kl_engine": 1e-4,
        "kl_rounding": 0.0,
        "kl_staleness": None if version == 1 else 2e-4,
        "publish_kl": version * 1e-5,
        "warnings": ["nothing moves"] if version == 4 else [],
        "reward_mean": reward,
        "reward_mean_by_domain": {"functions": reward},
        "completion_tokens_mean": 30.0,
        "staleness_max": 1,
        "staleness_mean": 0.5,
        "seconds": {"wait": 2.0, "step": 6.0, "publish": 1.0, "checkpoint": 1.0},
    }


def evaluation(number: int, epoch: int, rewards: list[float | None], temperature: float = 1.0) -> dict[str, Any]:
    spans = (
        TokenSpan(token_ids=pack_token_ids([1, 2])),
        TokenSpan(token_ids=pack_token_ids([3, 4, 5]), trainable=True, policy_version=PolicyVersion(1, 7)),
    )
    event = Trajectory(
        group_id=f"held-{number}-{epoch}-{temperature}",
        log_id="log",
        domain="held-out",
        prompt_id=f"held-out-{number}" + ("" if temperature else "-greedy"),
        epoch=epoch,
        num_samples=len(rewards),
        temperature=temperature,
        members=tuple(
            Member(sample_index=i, digest="d", spans=spans, reward=reward, text=f"answer {i}", verdict="accepted")
            for i, reward in enumerate(rewards)
        ),
        prompt_text=f"```python\ndef f{number}(x):\n```",
    )
    return evaluation_line(event, recorded_at=1.0)


def make_run(path: Path) -> RunDirectory:
    directory = RunDirectory(path / "run")
    directory.create()
    updates = [update(1, reward=-0.4), update(2), update(3), update(3, 2, 0.2), update(4, 2, 0.4)]
    directory.metrics.write_text("".join(json.dumps(line) + "\n" for line in updates) + '{"torn')
    lines = [*(ended(n) for n in range(6)), ended(6, "stale"), ended(7, "zero_spread"), ended(8, "run_ended")]
    directory.ledger.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    evaluations = [
        *(evaluation(n, 0, [-1.0, 0.0, 0.5, 1.0]) for n in range(6)),
        *(evaluation(n, 1, [1.0, 1.0, 0.5, None]) for n in range(6)),
        *(evaluation(n, epoch, [1.0], temperature=0.0) for n in range(6) for epoch in (0, 1)),
        evaluation_line(
            GroupDropped(
                group_id="x", log_id="log", domain="held-out", prompt_id="x", reason=DropReason.DEADLINE, detail="late"
            ),
            recorded_at=2.0,
        ),
    ]
    directory.evaluations.write_text("".join(json.dumps(line) + "\n" for line in evaluations))
    directory.phases.write_text(
        "".join(json.dumps({"phase": TRAINING, "started_at": 0.0, "seconds": s}) + "\n" for s in (30.0, 20.0))
    )
    position = Position(
        log_id="log",
        ended=NumberSet(low=9),
        version=4,
        ledger_lines=9,
        duplicates_dropped=3,
        max_staleness=1,
        admitted=9,
        outcomes={"trained": 6, "stale": 1, "zero_spread": 1, "run_ended": 1},
    )
    for name, saved in (("checkpoint-000001-000009", Position()), ("checkpoint-000002-000001", position)):
        (directory.checkpoints / name).mkdir()
        (directory.checkpoints / name / "position.json").write_bytes(msgspec.json.encode(saved))
    return directory


@pytest.mark.parametrize(
    ("reason", "max_updates", "ended_by"),
    [("run_ended", 4, "updates"), ("run_ended", 9, "time"), ("sources_ended", 9, "sources"), ("", 9, None)],
)
def test_the_report_says_what_ended_training(
    tmp_path: Path, reason: str, max_updates: int, ended_by: str | None
) -> None:
    directory = make_run(tmp_path)
    write_config(demo_config(model="m", seed=0, name="run", max_updates=max_updates), directory.config)
    path = directory.checkpoints / "checkpoint-000002-000001" / "position.json"
    position = msgspec.json.decode(path.read_bytes(), type=Position)
    position.drain_reason = reason
    path.write_bytes(msgspec.json.encode(position))
    console = Console(width=120, record=True, file=io.StringIO())
    assert write_report(directory, console)["ended_by"] == ended_by
    assert ("ended by time after 4 updates" in console.export_text()) == (ended_by == "time")


def test_the_summary_has_exactly_the_promised_figures(tmp_path: Path) -> None:
    directory = make_run(tmp_path)
    summary = summarise("run", read_run(directory))
    assert set(summary) == KEYS | {"run"}
    assert summary["held_out_reward_before"] == pytest.approx(0.125)
    assert summary["held_out_reward_after"] == pytest.approx(2.5 / 3), "the unscorable one is out of the mean"
    assert summary["held_out_pass_rate_before"] == pytest.approx(0.25)
    assert summary["held_out_pass_rate_after"] == pytest.approx(2 / 3)
    assert summary["updates"] == 4
    assert summary["training_seconds"] == 50.0
    assert (summary["groups_admitted"], summary["groups_trained"]) == (9, 6)
    assert summary["groups_dropped"] == {"run_ended": 1, "stale": 1, "zero_spread": 1}
    assert (summary["groups_trained_twice"], summary["groups_unaccounted"]) == (0, 0)
    assert (summary["duplicates_dropped"], summary["max_staleness"]) == (3, 1)
    assert summary["stage_seconds"] == {"wait": 8.0, "step": 24.0, "publish": 4.0, "checkpoint": 4.0}
    assert summary["learner_idle_share"] == pytest.approx(1 - 32 / 50)
    assert summary["publish_kl_max"] == pytest.approx(4e-5)
    assert summary["mismatch_kl_by_cause"] == pytest.approx({"engine": 1e-4, "rounding": 0.0, "staleness": 2e-4})
    assert summary["warnings"] == ["update 4: nothing moves"]


def test_the_summary_shows_a_missing_and_a_double_group(tmp_path: Path) -> None:
    directory = make_run(tmp_path)
    lines = directory.ledger.read_bytes().splitlines(keepends=True)
    directory.ledger.write_bytes(b"".join([*lines[:3], *lines[4:], lines[1]]))
    summary = summarise("run", read_run(directory))
    assert (summary["groups_trained_twice"], summary["groups_unaccounted"]) == (1, 1)


def test_the_lines_of_a_learner_that_was_superseded_do_not_count(tmp_path: Path) -> None:
    files = read_run(make_run(tmp_path))
    voided = [*files.ledger, ended(9, incarnation=2), ended(2)]
    assert summarise("run", msgspec_replace(files, ledger=voided))["groups_trained"] == 7


def msgspec_replace(files: Any, **changes: Any) -> Any:
    from dataclasses import replace

    return replace(files, **changes)


def test_greedy_and_sampled_answers_are_told_apart(tmp_path: Path) -> None:
    evaluations = read_run(make_run(tmp_path)).evaluations
    greedy = figures(evaluations, domain="held-out", epoch=1, greedy=True)
    sampled = figures(evaluations, domain="held-out", epoch=1, greedy=False)
    assert (greedy.prompts, greedy.answers, greedy.mean_reward) == (6, 6, 1.0)
    assert (sampled.prompts, sampled.answers, sampled.unscorable, sampled.mean_tokens) == (6, 18, 6, 3.0)


def test_updates_that_were_rolled_back_are_replaced(tmp_path: Path) -> None:
    directory = make_run(tmp_path)
    assert [(u["incarnation"], u["version"]) for u in read_updates(directory.metrics)] == [
        (1, 1),
        (1, 2),
        (2, 3),
        (2, 4),
    ]


def test_the_newest_position_counts(tmp_path: Path) -> None:
    position = newest_position(make_run(tmp_path))
    assert position is not None
    assert position.admitted == 9


def test_a_position_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    directory = make_run(tmp_path)
    (directory.checkpoints / "checkpoint-000002-000001" / "position.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"checkpoint-000002-000001.*position"):
        newest_position(directory)


def test_the_report_is_written_and_shown(tmp_path: Path) -> None:
    directory = make_run(tmp_path)
    with (tmp_path / "out").open("w") as out:
        console = Console(width=120, file=out, record=True)
        write_report(directory, console)
        text = console.export_text()
    for words in (
        "held out, greedy",
        "+0.12 → +0.83",
        "25% → 67%",
        "6 → 6 ",
        "4 in 0:50",
        "6 trained",
        "0 trained twice",
        "KL(published ‖ trained) 4.0e-05 nats at most",
        "engine 1.0e-04, rounding 0.0e+00, staleness 2.0e-04 nats",
        "update 4: nothing moves",
    ):
        assert words in text, words
    assert "after: +1.00" in text
    assert json.loads((directory.report / "summary.json").read_text())["updates"] == 4
    assert (directory.report / "run.png").read_bytes().startswith(b"\x89PNG")
    assert "Before: -1.00" in (directory.report / "answers.md").read_text()


def test_a_run_that_has_only_begun_has_a_report_too(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    summary = write_report(directory, None)
    assert summary["updates"] == 0
    assert summary["held_out_reward_before"] is None


def test_answer_pairs_are_of_the_same_problem(tmp_path: Path) -> None:
    pairs = answer_pairs(read_run(make_run(tmp_path)).evaluations)
    assert len(pairs) == 5
    for _, before, after in pairs:
        assert (before["reward"], after["reward"]) == (-1.0, 1.0)


def test_an_evaluation_line_has_what_was_sampled_and_with_what() -> None:
    line = evaluation(1, 0, [1.0])
    assert line["members"][0]["completion_tokens"] == 3
    assert line["members"][0]["policy_version"] == "1.7"


def test_phases_are_recorded_however_they_end(tmp_path: Path) -> None:
    path = tmp_path / "phases.jsonl"
    with pytest.raises(RuntimeError), phase(path, TRAINING):
        raise RuntimeError
    with phase(path, TRAINING):
        pass
    assert [line["phase"] for line in read_phases(path)] == [TRAINING, TRAINING]
