"""What a person sees of a bench: progress while it works, one table a part, and the JSON file."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

DIRECTORY = Path("build/bench")
Advance = Callable[[], None]
_progress_console = Console(stderr=True)


@contextmanager
def steps(what: str, total: int) -> Generator[Advance]:
    """A progress bar of `total` steps; calling what it yields moves it by one."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_progress_console, transient=_progress_console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)


def show(result: dict[str, Any], console: Console | None = None) -> None:
    """One part as a table: ratios first."""
    columns = (Column("figure", overflow="fold"), "value", "lowest – highest")
    table = Table(*columns, title=f"bench: {result['part']}", title_justify="left")
    for name, value in result["ratios"].items():
        low, high = result["spread"].get(name, (None, None))
        table.add_row(f"[bold]{name}[/]", f"[bold]{_number(value)}[/]", "" if low is None else f"{low} – {high}")
    for name, value in _flat(result["figures"]):
        table.add_row(name, _number(value), "")
    console = console or Console()
    if not console.is_terminal:
        console.width = 120
    console.print(table)
    machine = result["machine"]
    console.print(f"{result['repeats']} rounds, {machine['cpus']} CPUs, load {machine['load_1_minute']}\n")


def save(result: dict[str, Any]) -> Path:
    """build/bench/<part>.json"""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    path = DIRECTORY / f"{result['part']}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path


def _flat(figures: dict[str, Any], prefix: str = "") -> Generator[tuple[str, Any]]:
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _number(value: Any) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
