"""`python -m tests.bench [PART …] [--quick]`: each part in a process of its own, its figures printed and saved."""

import asyncio
import importlib
import logging
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tests.bench.output import save, show

PARTS = ("grade_path", "sandbox", "sampler", "learner", "run", "trl")


def main(
    parts: Annotated[list[str] | None, typer.Argument(help=f"Of: {', '.join(PARTS)}.", show_default="all")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: to see that it works, not to quote.")] = False,
    run: Annotated[Path | None, typer.Option("--run", help="Part `run`: read this finished run instead.")] = None,
) -> None:
    """Print figures and write them to build/bench/<part>.json."""
    chosen = parts or list(PARTS)
    if unknown := [part for part in chosen if part not in PARTS]:
        raise typer.BadParameter(f"there is no part {unknown[0]!r}: {', '.join(PARTS)}")
    if len(chosen) == 1:
        _measure(chosen[0], quick, run)
        return
    failed: list[str] = []
    for part in chosen:
        command = [sys.executable, "-m", "tests.bench", part, *(["--quick"] if quick else [])]
        if run is not None:
            command += ["--run", str(run)]
        # one after the other, and each alone: torch and DeepSpeed leave threads and memory behind
        if subprocess.run(command, check=False).returncode != 0:
            failed.append(part)
    if failed:
        print(f"no figures of: {', '.join(failed)}", file=sys.stderr)
        raise typer.Exit(1)


def _measure(part: str, quick: bool, directory: Path | None) -> None:
    logging.basicConfig(level=logging.WARNING)
    module = importlib.import_module(f"tests.bench.{part}")
    settings: dict[str, Any] = {"directory": directory} if part == "run" else {}
    result = asyncio.run(module.run(quick, **settings))
    show(result)
    save(result)


if __name__ == "__main__":
    typer.run(main)
