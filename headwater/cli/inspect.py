"""`status`, `ledger check`, `doctor`: looking without touching."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.common import RUNS, Bootstrap, Json, Prefix, Runs, console, given_kafka, kafka, run, run_directory

if TYPE_CHECKING:
    from headwater.look.status import Status

ledger = typer.Typer(help="The record of how every group ended.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Looking")(status)
    app.command(rich_help_panel="Looking")(doctor)
    app.add_typer(ledger, name="ledger", rich_help_panel="Looking")


def status(
    json_: Json = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    runs: Runs = RUNS,
) -> None:
    """Rates, lag and oldest age of every topic, versions, staleness, outstanding groups.

    Exit status 1 when the oldest unread event of a topic is older than half of what the topic keeps.

    Example: headwater status --json | jq .alarms
    """
    from headwater.look.status import read_status

    found = run(read_status(kafka(bootstrap, prefix, runs)))
    if json_:
        typer.echo(json.dumps(found.as_json()))
    else:
        _print_status(found)
    if found.alarms:
        raise typer.Exit(1)


def doctor(json_: Json = False, runs: Runs = RUNS) -> None:
    """What this machine has, what is missing, and how to mend it.

    Example: headwater doctor
    """
    from dataclasses import asdict

    from rich.table import Table

    from headwater.look.doctor import examine

    findings = list(examine(runs))
    if json_:
        typer.echo(json.dumps([asdict(finding) for finding in findings]))
    else:
        table = Table(show_header=False, box=None)
        colours = {"ok": "green", "missing": "red", "absent": "yellow"}
        for finding in findings:
            mend = f" — {finding.fix}" if finding.fix and finding.state != "ok" else ""
            table.add_row(f"[{colours[finding.state]}]{finding.state}[/]", finding.name, f"{finding.detail}{mend}")
        console().print(table)
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(1)


@ledger.command("check")
def ledger_check(
    run_: Annotated[Path, typer.Argument(metavar="RUN", help="Name or directory of a run.")],
    json_: Json = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    runs: Runs = RUNS,
) -> None:
    """See that every admitted group stands in the run's ledger once: against its checkpoint, and against the log.

    Without --bootstrap the log of the broker that serves the run now is taken, if there is one.

    Example: headwater ledger check demo-1
    """
    from headwater.look.ledger_check import check_run

    directory = run_directory(run_, runs)
    if bootstrap is None:
        bootstrap = directory.serving_broker()
    verdict = run(check_run(directory, given_kafka(bootstrap, prefix)))
    report = verdict.report
    if json_:
        typer.echo(
            json.dumps(
                {
                    "ok": not verdict.problems,
                    "lines": report.lines,
                    "void": report.void,
                    "problems": verdict.problems,
                    "compared": verdict.compared,
                }
            )
        )
    else:
        typer.echo(f"{report.lines} groups ended ({report.void} void lines), held against:")
        for what in verdict.compared or ("nothing: there is no checkpoint and no log",):
            typer.echo(f"  {what}")
        for problem in verdict.problems:
            typer.echo(f"wrong: {problem}", err=True)
        if not verdict.problems:
            typer.echo("every one exactly once")
    if verdict.problems:
        raise typer.Exit(1)


def _print_status(found: "Status") -> None:
    from rich.table import Table

    from headwater.look.live import age
    from wire.kafka.disk import GIB

    shown = console()
    shown.print(f"broker {found.bootstrap} · prefix {found.prefix} · log {found.log_id}", highlight=False)
    state = " · finished" if found.finished else " · closing" if found.closing else ""
    if found.run_id:
        told = age(found.progress_age_seconds)
        shown.print(
            f"run {found.run_id}{state} · learner at {found.policy_version} (told {told} ago) · weights "
            f"{found.newest_sampled_version} published · {found.staleness_updates} updates behind",
            highlight=False,
        )
    ended = ", ".join(f"{count} {outcome}" for outcome, count in sorted(found.outcomes.items())) or "none ended"
    outstanding = "?" if found.groups_outstanding is None else found.groups_outstanding
    shown.print(f"groups: {found.groups_admitted} admitted, {outstanding} outstanding; {ended}", highlight=False)
    if found.disk is not None:
        used, free, least = (
            f"{size / GIB:.2f} GiB" for size in (found.disk.used_bytes, found.disk.free_bytes, found.min_free_bytes)
        )
        bound = "without a bound" if found.bound_bytes is None else f"bound {found.bound_bytes / GIB:.2f} GiB"
        shown.print(f"disk: log {used} ({bound}), {free} free (admits down to {least})", highlight=False)
    if found.dead_letters:
        shown.print(f"[red]{found.dead_letters} dead letters[/]", highlight=False)
    table = Table(box=None)
    for name in ("topic", "read by", "events", "a second", "waiting", "oldest"):
        table.add_column(name, justify="left" if name in ("topic", "read by") else "right")
    for stage in found.stages:
        table.add_row(
            stage.topic,
            stage.reader,
            str(stage.total),
            f"{stage.rate:.1f}",
            str(stage.lag),
            age(stage.oldest_seconds),
            style="red" if stage.alarm else None,
        )
    shown.print(table)
    for alarm in found.alarms:
        shown.print(f"[red]{alarm}[/]", highlight=False)
