"""`broker`: an Apache Kafka of one's own, without Java or Kafka installed."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.common import Json, run

broker = typer.Typer(no_args_is_help=True, help="Apache Kafka on this machine, for a team or for tests.")


def _data() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "headwater" / "kafka"


Data = Annotated[
    Path, typer.Option(help="Where its log is kept.", metavar="DIR", default_factory=_data, show_default="~/.local/…")
]


def register(app: typer.Typer) -> None:
    app.add_typer(broker, name="broker", rich_help_panel="Runs")


@broker.command()
def start(
    data: Data,
    nodes: Annotated[int, typer.Option(help="1; or 3: each event three times, any one may die.")] = 1,
    port: Annotated[int, typer.Option(help="Two a node are taken, from here on; below 32768.")] = 9092,
    host: Annotated[str, typer.Option(help="An address of this machine that its clients can reach.")] = "127.0.0.1",
) -> None:
    """Start it and keep it until Ctrl-C; a node that dies is started again. What it holds is there the next time.

    Example: headwater broker start --nodes 3 --data /var/lib/kafka
    """
    from headwater.run.broker import serve

    if nodes not in (1, 3):
        raise typer.BadParameter("1 or 3", param_hint="--nodes")
    run(serve(data.resolve(), nodes=nodes, host=host, port=port, on_note=typer.echo))


@broker.command()
def stop(data: Data) -> None:
    """End it in order, from another terminal.

    Example: headwater broker stop
    """
    from headwater.run import broker as running

    running.stop(data.resolve())


@broker.command()
def status(data: Data, json_: Json = False) -> None:
    """Whether it runs, where it answers, and the disk that it takes.

    Example: headwater broker status --json
    """
    from dataclasses import asdict

    from headwater.run import broker as running

    found = running.status(data.resolve())
    if json_:
        typer.echo(json.dumps(asdict(found)))
        return
    state = f"answers at {found.bootstrap} (process {found.process})" if found.process else "does not run"
    typer.echo(f"the broker in {data} {state}; {found.disk_bytes / 2**20:.1f} MiB on disk")
