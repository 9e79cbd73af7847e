"""`headwater report`: what a run did, as figures, tables, pictures and answers to read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headwater.config.load import load_config
from headwater.files.phases import read_phases
from headwater.files.positions import newest_position
from headwater.files.run_directory import RunDirectory
from headwater.look.live import clock, headline
from headwater.look.observe import read_updates
from headwater.measure.held_out import GREEDY, HELD_OUT, NEW_TEMPLATES
from headwater.measure.recorder import read_evaluations
from headwater.report.plots import LEARNER_STAGES, plot_run
from headwater.report.summary import Figures, Line, RunFiles, figures, summarise
from learner.book.ledger import read_ledger

_ANSWERS = 5
_WARNINGS = 5
_SETS = (
    ("held out", HELD_OUT, False),
    ("held out, greedy", HELD_OUT, True),
    ("new templates", NEW_TEMPLATES, False),
    ("new templates, greedy", NEW_TEMPLATES, True),
)
SUMMARY = "summary.json"
PLOT = "run.png"
STAGES = "stages.json"
"""Seconds that each hop spent handling events: left by the supervisor, for the hops' counters end with them."""


def write_report(directory: RunDirectory, console: Console | None, *, as_json: bool = False) -> dict[str, Any]:
    """Write `report/` and show it. Returns the summary. Raises RunDirectoryError."""
    directory.report.mkdir(exist_ok=True)
    files = read_run(directory)
    summary = summarise(directory.name, files)
    (directory.report / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n")
    rows = [(name, *_before_and_after(files.evaluations, domain, greedy)) for name, domain, greedy in _SETS]
    if files.updates:
        plot_run(files.updates, _bars(rows), directory.report / PLOT)
    pairs = answer_pairs(files.evaluations)
    (directory.report / "answers.md").write_text(_answers_text(pairs), encoding="utf-8")
    if as_json:
        print(json.dumps(summary))
    elif console is not None:
        console.print(render(directory.path, summary, rows, pairs))
    return summary


def read_run(directory: RunDirectory) -> RunFiles:
    """Everything in the run directory that the report speaks of."""
    stages = directory.report / STAGES
    return RunFiles(
        updates=read_updates(directory.metrics),
        ledger=read_ledger(directory.ledger) if directory.ledger.exists() else [],
        evaluations=read_evaluations(directory.evaluations),
        phases=read_phases(directory.phases),
        position=newest_position(directory),
        stage_seconds=json.loads(stages.read_text()) if stages.exists() else {},
        config=load_config(directory.config, {}) if directory.config.exists() else None,
    )


def answer_pairs(evaluations: Sequence[Line]) -> list[tuple[str, Line, Line]]:
    """(prompt, answer before, answer after) of a few held-out problems: first those that changed most."""
    firsts: dict[int, dict[str, tuple[str, Line]]] = {0: {}, 1: {}}
    for line in evaluations:
        sampled = "members" in line and line["domain"] == HELD_OUT and not line["prompt_id"].endswith(GREEDY)
        if sampled and line["epoch"] in firsts and line["members"]:
            firsts[line["epoch"]][line["prompt_id"]] = (line["prompt"], line["members"][0])
    both = [(prompt, before, firsts[1][i][1]) for i, (prompt, before) in firsts[0].items() if i in firsts[1]]
    rises = [pair for pair in both if pair[1]["reward"] is not None and pair[2]["reward"] is not None]
    rises.sort(key=lambda pair: pair[2]["reward"] - pair[1]["reward"])
    # the most telling and one that did not get better
    return (rises[::-1][: _ANSWERS - 1] + rises[:1]) if len(rises) > _ANSWERS else rises


def render(
    path: Path, summary: dict[str, Any], rows: list[tuple[str, Figures, Figures]], pairs: list[tuple[str, Line, Line]]
) -> RenderableType:
    """What a person sees of it."""
    parts: list[RenderableType] = []
    if any(before.answers or after.answers for _, before, after in rows):
        parts.append(_results(rows))
    parts.append(_run_table(summary))
    for prompt, before, after in pairs:
        parts.append(_pair(prompt, before, after))
    parts.append(
        Text.assemble(
            "the run: ", (str(path), "bold"), f"\nfigures: {path}/report/{SUMMARY}   plots: {path}/report/{PLOT}"
        )
    )
    return Group(*parts)


def _before_and_after(evaluations: Sequence[Line], domain: str, greedy: bool) -> tuple[Figures, Figures]:
    return (
        figures(evaluations, domain=domain, epoch=0, greedy=greedy),
        figures(evaluations, domain=domain, epoch=1, greedy=greedy),
    )


def _bars(rows: list[tuple[str, Figures, Figures]]) -> dict[str, tuple[float, float]]:
    bars: dict[str, tuple[float, float]] = {}
    for name, before, after in rows:
        if before.mean_reward is not None and after.mean_reward is not None and "greedy" not in name:
            bars[f"{name} reward"] = (before.mean_reward, after.mean_reward)
            bars[f"{name} pass"] = (before.pass_rate or 0.0, after.pass_rate or 0.0)
    return bars


def _results(rows: list[tuple[str, Figures, Figures]]) -> Table:
    table = Table(title="held-out problems, before → after training", box=box.SIMPLE_HEAD, title_justify="left")
    for name in ("set", "prompts", "answers", "mean reward", "pass rate", "tokens"):
        table.add_column(name, justify="left" if name == "set" else "right", no_wrap=True)
    for name, before, after in rows:
        if not before.answers and not after.answers:
            continue
        table.add_row(
            name,
            str(after.prompts or before.prompts),
            f"{_answers(before)} → {_answers(after)}",
            _change(before.mean_reward, after.mean_reward, "+.2f"),
            _change(before.pass_rate, after.pass_rate, ".0%"),
            _change(before.mean_tokens, after.mean_tokens, ".0f"),
        )
    return table


def _answers(found: Figures) -> str:
    return f"{found.answers} (+{found.unscorable} unscorable)" if found.unscorable else str(found.answers)


def _change(before: float | None, after: float | None, form: str) -> str:
    shown = ["—" if value is None else format(value, form) for value in (before, after)]
    return f"{shown[0]} → [bold]{shown[1]}[/]"


def _seconds(stages: dict[str, float]) -> str:
    return ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in stages.items())


def _run_table(summary: dict[str, Any]) -> Table:
    table = Table(title="the run", show_header=False, title_justify="left", box=None, title_style="bold")
    dropped = ", ".join(f"{count} {reason}" for reason, count in summary["groups_dropped"].items()) or "none"
    updates = f"{summary['updates']} in {clock(summary['training_seconds'])}"
    if summary["ended_by"] == "time":
        updates += f": ended by time after {summary['updates']} updates"
    table.add_row("updates", updates)
    if summary["dtype"]:
        table.add_row("dtype", summary["dtype"])
    table.add_row(
        "groups", f"{summary['groups_admitted']} admitted, {summary['groups_trained']} trained, dropped: {dropped}"
    )
    table.add_row(
        "exactly once",
        f"{summary['groups_trained_twice']} trained twice, {summary['groups_unaccounted']} unaccounted for, "
        f"{summary['duplicates_dropped']} duplicates dropped",
    )
    table.add_row("staleness", f"{summary['max_staleness']} updates at most")
    if summary["publish_kl_max"] is not None:
        table.add_row("published", f"KL(published ‖ trained) {summary['publish_kl_max']:.1e} nats at most")
        causes = [
            f"{cause} {'unknown' if value is None else format(value, '.1e')}"
            for cause, value in summary["mismatch_kl_by_cause"].items()
        ]
        table.add_row("mismatch", f"KL(sampler ‖ trained) an update: {', '.join(causes)} nats")
    for warning in summary["warnings"][:_WARNINGS]:
        table.add_row("[yellow]warning[/]", Text(warning, style="yellow"))
    if more := summary["warnings"][_WARNINGS:]:
        table.add_row("", f"and {len(more)} more in {SUMMARY}")
    learner = {stage: summary["stage_seconds"].get(stage, 0.0) for stage in LEARNER_STAGES}
    hops = {stage: seconds for stage, seconds in summary["stage_seconds"].items() if stage not in LEARNER_STAGES}
    table.add_row("learner", _seconds(learner))
    table.add_row("hops busy", _seconds(hops) or "—")
    if summary["learner_idle_share"] is not None:
        table.add_row("learner idle", f"{summary['learner_idle_share']:.0%}")
    return table


def _pair(prompt: str, before: Line, after: Line) -> Panel:
    grid = Table.grid(expand=True, padding=(0, 2))
    grid.add_column(ratio=1)
    grid.add_column(ratio=1)
    grid.add_row(
        Text(f"before: {before['reward']:+.2f} {before['verdict'] or ''}", style="dim"),
        Text(
            f"after: {after['reward']:+.2f} {after['verdict'] or ''}", style="green" if after["reward"] == 1 else "dim"
        ),
    )
    grid.add_row(Text(_short(before["text"])), Text(_short(after["text"])))
    return Panel(grid, title=Text(headline(prompt, 100)), title_align="left")


def _short(text: str, lines: int = 10) -> str:
    kept = text.strip().splitlines()
    return "\n".join(kept[:lines]) + ("\n…" if len(kept) > lines else "")


def _answers_text(pairs: list[tuple[str, Line, Line]]) -> str:
    parts = ["# Answers before and after\n"]
    for prompt, before, after in pairs:
        parts.append(f"## {prompt.strip()}\n")
        for when, answer in (("Before", before), ("After", after)):
            parts.append(
                f"{when}: {answer['reward']:+.2f}, {answer['verdict']}\n\n````\n{answer['text'].strip()}\n````\n"
            )
    return "\n".join(parts)
