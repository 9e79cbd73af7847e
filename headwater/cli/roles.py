"""`worker` and `learner`: one role in this process. `up` starts them so, and so does anyone on another machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.common import Bootstrap, Prefix
from headwater.run.roles import ROLES, Role, role_called

if TYPE_CHECKING:
    from wire.kafka.settings import KafkaSettings

WORKERS = [role for role in ROLES if role.command == "worker"]

Directory = Annotated[
    Path, typer.Option("--run-directory", help="For its state and logs; config.toml in it has the run's settings.")
]
MetricsPort = Annotated[int, typer.Option("--metrics-port", help="Of /metrics; 0: any free one.")]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Roles")(worker)
    app.command(rich_help_panel="Roles")(learner)


def worker(
    hop: Annotated[str, typer.Argument(help=f"One of: {', '.join(role.name for role in WORKERS)}.")],
    directory: Directory,
    name: Annotated[
        str | None, typer.Option(help="Its name among others of its kind.", show_default="the hop's")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    metrics_port: MetricsPort = 0,
    allow_unenforced: Annotated[
        list[str] | None, typer.Option(help="sandbox: a limit that this host need not enforce (see `doctor`).")
    ] = None,
) -> None:
    """Run one hop of the stream until SIGTERM. More of a kind share its work; start them on any machine.

    Example: headwater worker sandbox --run-directory /var/lib/headwater --bootstrap kafka:9092
    """
    role = role_called(hop, WORKERS)
    _run(role, name or role.name, directory, bootstrap, prefix, metrics_port, tuple(allow_unenforced or ()))


def learner(
    directory: Directory,
    name: Annotated[str, typer.Option(hidden=True)] = "learner",
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    metrics_port: MetricsPort = 0,
) -> None:
    """Run the learner until every group of the run has ended, or SIGTERM: then it saves a checkpoint first.

    Example: headwater learner --run-directory runs/my-run --bootstrap kafka:9092
    """
    _run(role_called("learner"), name, directory, bootstrap, prefix, metrics_port)


def _run(
    role: Role,
    name: str,
    directory: Path,
    bootstrap: str | None,
    prefix: str | None,
    metrics_port: int,
    allow_unenforced: tuple[str, ...] = (),
) -> None:
    import asyncio
    import logging

    from headwater.cli.common import kafka
    from headwater.files.run_directory import RunDirectory
    from headwater.run.role_process import run_role

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    for noisy in ("aiokafka", "faust", "mode"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    settings: KafkaSettings = kafka(bootstrap, prefix)
    try:
        asyncio.run(
            run_role(
                role,
                name,
                RunDirectory(directory.resolve()),
                settings,
                metrics_port=metrics_port,
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
