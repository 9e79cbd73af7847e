"""`score` and `eval`: grade answers that somebody has, or a model's own."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.common import RUNS, Bootstrap, Json, Prefix, Runs, console, given_kafka, run
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.client import Scored

Unenforced = Annotated[
    list[str] | None,
    typer.Option("--allow-unenforced", help="A limit that this host need not enforce (see `headwater doctor`)."),
]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Grading")(score)
    app.command("eval", rich_help_panel="Grading")(evaluate)


def score(
    dataset: Annotated[
        str, typer.Option(help="`humaneval` (or another domain), or a JSONL file of {id, answer, grader}.")
    ],
    completions: Annotated[
        str, typer.Option(help="Of a domain: `canonical`, `empty`, or a JSONL file of {task_id, completion}.")
    ] = "canonical",
    json_: Json = False,
    allow_unenforced: Unenforced = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
) -> None:
    """Send answers through the stream and print their rewards. Starts what it needs when no --bootstrap is given.

    Example: headwater score --dataset humaneval --completions canonical

    Example: headwater score --dataset answers.jsonl --json | jq .reward
    """
    from headwater.measure.score import domain_answers, file_answers, score_answers, summary
    from tasks.registry import domain_names, find_domain

    given = dataset in domain_names()
    if given:
        answers = domain_answers(find_domain(dataset), completions, lambda note: typer.echo(note, err=True))
    else:
        answers = file_answers(Path(dataset))
    if not answers:
        raise HeadwaterError(f"{dataset} has no answers")
    from rich.console import Console
    from rich.progress import Progress

    notes = Console(stderr=True)
    with Progress(console=notes, transient=True) as progress:
        task = progress.add_task("scoring", total=len(answers))
        scored = run(
            score_answers(
                answers,
                given_kafka(bootstrap, prefix),
                allow_unenforced=allow_unenforced or (),
                on_note=lambda text: notes.print(text, markup=False, highlight=False),
                on_scored=lambda _: progress.advance(task),
            )
        )
    if json_:
        for one in scored:
            typer.echo(json.dumps(_as_json(one), ensure_ascii=False))
    else:
        _print_table(scored, summary(scored))
    if any(one.reward is None for one in scored):
        raise typer.Exit(1)


def evaluate(
    model: Annotated[
        str | None,
        typer.Argument(help="Name, directory or hub id, or a run. Left out: the stream's.", show_default=False),
    ] = None,
    dataset: Annotated[
        str,
        typer.Option(help="A domain (`functions`, `new-templates`, `humaneval`), or a file of prompts."),
    ] = "functions",
    prompts: Annotated[int, typer.Option(min=1, help="How many, at most.")] = 64,
    samples: Annotated[int, typer.Option(min=1, help="Sampled answers to each, beside the greedy one.")] = 4,
    max_new_tokens: Annotated[int, typer.Option(min=1)] = 96,
    seed: Annotated[int, typer.Option(help="Of sampling and of made-up tasks.")] = 10_007,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json_: Json = False,
    allow_unenforced: Unenforced = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    runs: Runs = RUNS,
) -> None:
    """Measure a model: greedy and at temperature 1, by domain. Starts what it needs when no --bootstrap is given.

    With --bootstrap the policy of that stream is measured, by the scheduler and workers that run there.

    Example: headwater eval runs/demo-1 --dataset functions

    Example: headwater eval smollm2-135m-instruct --dataset humaneval --prompts 20 --samples 1
    """
    from rich.console import Console

    from headwater.measure.evaluate import EvaluateRequest, evaluate_model

    notes = Console(stderr=True)
    request = EvaluateRequest(
        model=model,
        runs=runs,
        dataset=dataset,
        prompts=prompts,
        samples=samples,
        max_new_tokens=max_new_tokens,
        seed=seed,
        device=device,
        allow_unenforced=tuple(allow_unenforced or ()),
    )
    figures = run(
        evaluate_model(
            request,
            given_kafka(bootstrap, prefix),
            on_note=lambda text: notes.print(text, markup=False, highlight=False),
        )
    )
    if json_:
        typer.echo(json.dumps(figures))
        return
    _print_figures(figures)


def _as_json(one: "Scored") -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(one), "components": dict(one.components)}


def _print_table(scored: "list[Scored]", figures: dict[str, Any]) -> None:
    from rich.table import Table

    shown = console()
    failed = [one for one in scored if one.reward != 1.0]
    if failed:
        table = Table(
            title=f"{len(failed)} answers without the full reward" + (", the first 20" if len(failed) > 20 else "")
        )
        for name in ("id", "reward", "passed", "verdict", "feedback"):
            table.add_column(name, overflow="fold")
        for one in failed[:20]:
            reward = "—" if one.reward is None else f"{one.reward:+.3f}"
            why = one.unscorable or _telling_line(one.feedback)
            table.add_row(one.id, reward, f"{one.passed}/{one.tests}", one.verdict or "unscorable", why)
        shown.print(table)
    mean = figures["mean_reward"]
    shown.print(
        f"{figures['answers']} answers, {figures['scorable']} scorable, {figures['reward_1']} with reward 1.0, "
        f"mean reward {'—' if mean is None else f'{mean:+.4f}'}",
        highlight=False,
    )
    shown.print(
        "verdicts: " + ", ".join(f"{count} {name}" for name, count in figures["verdicts"].items()), highlight=False
    )


def _print_figures(figures: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=f"{figures['model']} · {figures['prompts']} prompts")
    for name in ("domain", "sampling", "answers", "mean reward", "pass rate", "mean tokens", "unscorable", "left out"):
        table.add_column(name, justify="left" if name in ("domain", "sampling") else "right")
    for row in figures["results"]:
        table.add_row(
            row["domain"],
            row["sampling"],
            str(row["answers"]),
            _number(row["mean_reward"], "+.3f"),
            _number(row["pass_rate"], ".1%"),
            _number(row["mean_tokens"], ".1f"),
            str(row["unscorable"]),
            str(row["left_out"]),
        )
    console().print(table)


def _number(value: float | None, form: str) -> str:
    return "—" if value is None else format(value, form)


def _telling_line(feedback: str) -> str:
    """The line that says most: the error that a compiler names, or what the first failed test found."""
    lines = feedback.strip().splitlines()
    # the count of passed tests has a column of its own
    lines = [line for line in lines if not line.startswith("Passed ")] or lines
    errors = (line for line in lines if "error" in line.lower())
    return next(errors, lines[0] if lines else "")
