"""`demo`, `init`, `up`, `report`, `export`: runs and what is left of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.common import RUNS, Bootstrap, Json, Prefix, Runs, console, given_kafka, run, run_directory
from headwater.errors import HeadwaterError, RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.config.run_config import RunConfig
    from headwater.files.run_directory import RunDirectory
    from wire.kafka.settings import KafkaSettings


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Runs")(demo)
    app.command(rich_help_panel="Runs")(init)
    app.command(rich_help_panel="Runs")(up)
    app.command(rich_help_panel="Runs")(report)
    app.command(rich_help_panel="Runs")(export)


def demo(
    model: Annotated[str, typer.Option(help="Model to train: name, directory or hub id.")] = "smollm2-135m-instruct",
    seed: Annotated[int, typer.Option(help="Of tasks, sampling and training.")] = 0,
    max_updates: Annotated[int | None, typer.Option(help="Updates to train for.", show_default="the demo's")] = None,
    name: Annotated[str | None, typer.Option(help="Of the run directory.", show_default="demo-1, demo-2, …")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override a setting: key=value.")] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    runs: Runs = RUNS,
) -> None:
    """Watch a small model learn to write code that passes tests in a sandbox.

    Measures held-out problems, trains, measures the same problems again, and reports. About eleven minutes on two
    cores.

    Example: headwater demo --seed 1 --name first
    """
    from headwater.run.demo import demo_config
    from headwater.run.precision import settled

    chosen = name or _free_name(runs, "demo")
    config = demo_config(model=model, seed=seed, name=chosen, max_updates=max_updates, overrides=set_ or [])
    directory, settings = _new(runs, chosen), given_kafka(bootstrap, prefix)
    config, notes = run(settled(config))
    _up(config, directory, settings, notes)


def init(
    file: Annotated[Path, typer.Argument(help="The TOML file to write.")] = Path("run.toml"),
    name: Annotated[str, typer.Option(help="Of the run.")] = "my-run",
) -> None:
    """Write a commented configuration to start from.

    Example: headwater init sums.toml --name sums
    """
    from headwater.config.run_config import check_name
    from headwater.config.template import template

    check_name(name)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(template(str(file), name))
    except FileExistsError as error:
        raise HeadwaterError(f"{file} is there already: remove it, or name another file") from error
    except OSError as error:
        raise HeadwaterError(f"{file} cannot be written: {error.strerror}") from error
    typer.echo(f"wrote {file}; edit it, then: headwater up {file}")


def up(
    config: Annotated[Path | None, typer.Argument(help="The run's TOML file.", show_default=False)] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Go on with this run, from its checkpoint.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override a setting: key=value.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the configuration.")] = False,
    elsewhere: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Leave a role to other machines: `headwater worker ROLE --run NAME` there."),
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    runs: Runs = RUNS,
) -> None:
    """Start a broker (unless --bootstrap is given), every role and the learner, and train to the end.

    Ctrl-C ends everything in order, a second one at once.

    Example: headwater up run.toml --set training.max_updates=50

    Example: headwater up --resume runs/my-run

    Example: headwater up run.toml --bootstrap kafka:9092 --elsewhere learner --elsewhere rollout
    """
    import os

    from headwater.config.load import load_config
    from headwater.config.paths import anchored
    from headwater.run.models import check_model
    from headwater.run.precision import as_recorded, settled
    from headwater.run.sources import check_data

    if (config is None) == (resume is None):
        raise HeadwaterError("give either a configuration (`headwater up run.toml`) or --resume RUN")
    if resume is not None:
        directory = run_directory(resume, runs)
        settings = load_config(directory.config, os.environ, set_ or [])
        settings = as_recorded(settings, load_config(directory.config, {}))
        if settings.name != directory.name:
            settings = settings.model_copy(update={"name": directory.name})
        check_data(settings)
        check_model(settings.model)
    else:
        assert config is not None
        settings = load_config(config, os.environ, set_ or [])
        check_data(settings)
        if check:
            check_model(settings.model)
            typer.echo(f"{config} is a valid run: {settings.name}")
            for warning in settings.dtype_warnings:
                typer.echo(f"warning: {warning}")
            return
        directory = _new(runs, settings.name)
    settings, notes = run(settled(anchored(settings)))
    _up(settings, directory, given_kafka(bootstrap, prefix or settings.broker.prefix), notes, elsewhere or ())


def report(
    run_: Annotated[Path, typer.Argument(metavar="RUN", help="Name or directory of a run.")],
    json_: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Sum up a run: report/summary.json, a table, plots, and answers before and after.

    Example: headwater report demo-1
    """
    from headwater.report.report import write_report

    write_report(run_directory(run_, runs), None if json_ else console(), as_json=json_)


def export(
    run_: Annotated[Path, typer.Argument(metavar="RUN", help="Name or directory of a run.")],
    directory: Annotated[Path, typer.Argument(help="Where to put the model; must not exist.")],
    runs: Runs = RUNS,
) -> None:
    """Copy a run's newest weights out as a Hugging Face model directory, verified byte for byte.

    Example: headwater export demo-1 my-model
    """
    from headwater.files.export import export_model

    version = export_model(run_directory(run_, runs), directory)
    typer.echo(f"policy version {version} is in {directory}")


def _new(runs: Path, name: str) -> "RunDirectory":
    from headwater.files.run_directory import RunDirectory

    directory = RunDirectory((runs / name).resolve())
    if directory.config.exists():
        raise RunDirectoryError(
            f"{runs / name} is there already: go on with `headwater up --resume {runs / name}`, or give another name"
        )
    return directory


def _free_name(runs: Path, base: str) -> str:
    number = 1
    while (runs / f"{base}-{number}" / "config.toml").exists():
        number += 1
    return f"{base}-{number}"


def _up(
    config: "RunConfig",
    directory: "RunDirectory",
    settings: "KafkaSettings | None",
    notes: "Sequence[str]",
    elsewhere: "Sequence[str]" = (),
) -> None:
    from headwater.look.display import Display
    from headwater.report.report import write_report
    from headwater.report.trained import check_trained
    from headwater.run.up import run_up
    from schemas.roles import RoleName

    shown = console()
    with directory.lock():
        run(run_up(config, directory, settings, Display(shown, directory.log("up")), elsewhere=elsewhere, notes=notes))
        summary = write_report(directory, shown)
        if RoleName.LEARNER not in elsewhere:
            check_trained(summary, directory.logs)
