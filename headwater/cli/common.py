"""What the commands share: the options of a broker, and running a coroutine with clear errors."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.errors import HeadwaterError, Interrupted

if TYPE_CHECKING:
    from rich.console import Console

    from headwater.files.run_directory import RunDirectory
    from wire.kafka.settings import KafkaSettings

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        help="host:port of a Kafka broker (HEADWATER_KAFKA_BOOTSTRAP).",
        metavar="HOST:PORT",
        show_default=False,
    ),
]
Prefix = Annotated[str | None, typer.Option("--prefix", help="What topic names begin with.", show_default="headwater.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Runs = Annotated[Path, typer.Option("--runs", help="Where run directories are.", metavar="DIR")]
RUNS = Path("runs")


def run[T](work: Coroutine[Any, Any, T]) -> T:
    """Run it. What wire, the sandbox or the learner says to a person becomes a HeadwaterError with the same words."""
    from learner.errors import LearnerError
    from wire.errors import WireError

    try:
        return asyncio.run(work)
    except (WireError, LearnerError) as error:
        raise HeadwaterError(str(error)) from error
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted") from error


def kafka(bootstrap: str | None, prefix: str | None, runs: Path = RUNS) -> "KafkaSettings":
    """The broker that a command speaks to: given, of the environment, or that of the one run that is up here.

    Raises HeadwaterError when there is none.
    """
    import os

    from wire.kafka.settings import from_environment

    if bootstrap is None and "HEADWATER_KAFKA_BOOTSTRAP" not in os.environ:
        bootstrap = _only_running(runs)
    try:
        return from_environment(bootstrap=bootstrap, prefix=prefix)
    except ValueError as error:
        raise HeadwaterError(str(error)) from error


def given_kafka(bootstrap: str | None, prefix: str | None) -> "KafkaSettings | None":
    """The broker that was asked for; None: the command starts one of its own."""
    import os

    if bootstrap is None and "HEADWATER_KAFKA_BOOTSTRAP" not in os.environ:
        return None
    return kafka(bootstrap, prefix)


def run_directory(run: Path, runs: Path = RUNS) -> "RunDirectory":
    """The directory of a run given by its name or path. Raises RunDirectoryError."""
    from headwater.files.run_directory import RunDirectory

    path = run if run.is_dir() or not (runs / run).is_dir() else runs / run
    directory = RunDirectory(path.resolve())
    directory.must_exist()
    return directory


def console() -> "Console":
    """Standard output; wide enough for the tables where it is no terminal and nobody says how wide it is."""
    import os
    import sys

    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120)


def _only_running(runs: Path) -> str:
    from headwater.files.run_directory import RunDirectory

    found = [RunDirectory(path.parent).serving_broker() for path in sorted(runs.glob("*/bootstrap"))]
    found = [address for address in found if address]
    if len(found) == 1:
        return found[0]
    which = f"{len(found)} runs are up" if found else "no run is up here"
    raise HeadwaterError(
        f"no broker was named, and {which}: give --bootstrap HOST:PORT or set HEADWATER_KAFKA_BOOTSTRAP"
    )
