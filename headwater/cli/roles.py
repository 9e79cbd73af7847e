"""`worker` and `learner`: one role in this process. `up` starts them so, and so does anyone on another machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from headwater.cli.common import RUNS, Bootstrap, Prefix
from headwater.errors import HeadwaterError
from headwater.run.roles import ROLES, Role, role_called

if TYPE_CHECKING:
    from wire.kafka.settings import KafkaSettings

WORKERS = [role for role in ROLES if role.command == "worker"]

Run = Annotated[
    str | None, typer.Option("--run", help="The run to join: its name, or its id where several had the name.")
]
Directory = Annotated[
    Path | None,
    typer.Option("--run-directory", help="For its state and logs on this machine.", show_default="runs/NAME"),
]
MetricsHost = Annotated[
    str, typer.Option("--metrics-host", help="Address of this machine to serve /metrics at; 0.0.0.0: all.")
]
MetricsPort = Annotated[int, typer.Option("--metrics-port", help="Of /metrics; 0: any free one.")]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Roles")(worker)
    app.command(rich_help_panel="Roles")(learner)


def worker(
    hop: Annotated[str, typer.Argument(help=f"One of: {', '.join(role.name for role in WORKERS)}.")],
    run_: Run = None,
    directory: Directory = None,
    name: Annotated[
        str | None, typer.Option(help="Its name among others of its kind on this machine.", show_default="the hop's")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    metrics_host: MetricsHost = "127.0.0.1",
    metrics_port: MetricsPort = 0,
    allow_unenforced: Annotated[
        list[str] | None, typer.Option(help="sandbox: a limit that this host need not enforce (see `doctor`).")
    ] = None,
) -> None:
    """Run one hop of the stream until SIGTERM. More of a kind share its work; start them on any machine.

    It needs nothing but the broker's address and the run's name.

    Example: headwater worker rollout --bootstrap kafka:9092 --run my-run
    """
    role = role_called(hop, WORKERS)
    place = _Where(run_, directory, bootstrap, prefix, metrics_host, metrics_port)
    _run(role, name or role.name, place, tuple(allow_unenforced or ()))


def learner(
    run_: Run = None,
    directory: Directory = None,
    name: Annotated[str, typer.Option(hidden=True)] = "learner",
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    metrics_host: MetricsHost = "127.0.0.1",
    metrics_port: MetricsPort = 0,
) -> None:
    """Run the learner until every group of the run has ended, or SIGTERM: then it saves a checkpoint first.

    It goes on from the run's newest checkpoint, whichever machine wrote that, when the run has a storage.url.

    Example: headwater learner --bootstrap kafka:9092 --run my-run
    """
    _run(role_called("learner"), name, _Where(run_, directory, bootstrap, prefix, metrics_host, metrics_port))


class _Where(NamedTuple):
    """Where a role runs, and what it joins."""

    run: str | None
    directory: Path | None
    bootstrap: str | None
    prefix: str | None
    metrics_host: str
    metrics_port: int


def _run(role: Role, name: str, place: _Where, allow_unenforced: tuple[str, ...] = ()) -> None:
    import asyncio
    import logging

    from headwater.cli.common import kafka
    from headwater.files.run_directory import RunDirectory
    from headwater.run.role_process import run_role

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    for noisy in ("aiokafka", "faust", "mode"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    settings: KafkaSettings = kafka(place.bootstrap, place.prefix)
    directory = place.directory
    if directory is None:
        if place.run is None:
            raise HeadwaterError("give --run NAME, the run to join (or --run-directory, where grading is all there is)")
        directory = RUNS / place.run
    try:
        asyncio.run(
            run_role(
                role,
                name,
                RunDirectory(directory.resolve()),
                settings,
                run=place.run,
                metrics_host=place.metrics_host,
                metrics_port=place.metrics_port,
                allow_unenforced=allow_unenforced,
            )
        )
    except Exception as error:
        from headwater.run.failures import in_words, refuses_restart
        from headwater.run.supervisor import REFUSED

        words = in_words(error)
        if words is None:
            raise
        typer.echo(f"error: {words}", err=True)
        raise SystemExit(REFUSED if refuses_restart(error) else 1) from error
