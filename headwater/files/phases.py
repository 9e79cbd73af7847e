"""When the parts of a run began and ended: `phases.jsonl`, written by the supervisor alone."""

import json
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BEFORE = "evaluation before"
TRAINING = "training"
AFTER = "evaluation after"


@contextmanager
def phase(path: Path, name: str) -> Generator[None]:
    """Record how long the body took, however it ends."""
    started = time.time()
    try:
        yield
    finally:
        line = {"phase": name, "started_at": round(started, 3), "seconds": round(time.time() - started, 3)}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def read_phases(path: Path) -> list[dict[str, Any]]:
    """All of them; none when the file is not there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def seconds_in(phases: Iterable[dict[str, Any]], name: str) -> float:
    """Seconds spent in phases of that name, over all resumes."""
    return sum(line["seconds"] for line in phases if line["phase"] == name)
