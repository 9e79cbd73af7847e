"""What the learner waits for in a real run: a short one of its own, or a finished one that is given."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from headwater.run.processes import RoleSpec, headwater_command, last_lines, start_process, stop_process
from tests.bench.measure import Measurement
from tests.bench.output import DIRECTORY, steps

RUNS = DIRECTORY / "runs"
LIMIT_SECONDS = 1800


async def run(quick: bool, directory: Path | None = None) -> dict[str, Any]:
    """Idle share and stage seconds, of the run's report. Without `directory` the demo trains for a few updates."""
    if directory is None:
        directory = await _short_run(*((2, 2, 4, 24) if quick else (4, 4, 8, 62)))
    summary = directory / "report" / "summary.json"
    if not summary.is_file():
        await _headwater("report", str(directory))
    return measured(json.loads(summary.read_text())).as_json()


def measured(summary: dict[str, Any]) -> Measurement:
    """The figures of a report/summary.json."""
    result = Measurement("run", repeats=1)
    updates, seconds = summary["updates"], summary["training_seconds"]
    result.ratios["learner_idle_share"] = summary["learner_idle_share"]
    stages = summary["stage_seconds"]
    learner = [stages.get(stage, 0.0) for stage in ("wait", "step", "publish", "checkpoint")]
    if sum(learner):
        result.ratios["learner_waiting_share_of_updates"] = round(learner[0] / sum(learner), 3)
    result.figures = {
        "run": summary["run"],
        "updates": updates,
        "training_seconds": seconds,
        "seconds_per_update": round(seconds / updates, 1) if updates else None,
        "groups_trained": summary["groups_trained"],
        "max_staleness_updates": summary["max_staleness"],
        "stage_seconds": stages,
    }
    return result


async def _short_run(updates: int, batch_groups: int, group_size: int, max_new_tokens: int) -> Path:
    """The demo without its evaluations: every role, the demo's model."""
    directory = RUNS / "short"
    shutil.rmtree(directory, ignore_errors=True)
    settings = {
        "evaluation.before_and_after": "false",
        "training.batch_groups": str(batch_groups),
        "sampling.group_size": str(group_size),
        "sampling.max_new_tokens": str(max_new_tokens),
    }
    overrides = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    demo = asyncio.create_task(
        _headwater("demo", "--name", directory.name, "--runs", str(RUNS), "--max-updates", str(updates), *overrides)
    )
    with steps("run: updates", updates) as advance:
        seen = 0
        while not demo.done():
            await asyncio.wait([demo], timeout=1)
            lines = _lines(directory / "metrics.jsonl")
            for _ in range(lines - seen):
                advance()
            seen = max(seen, lines)
    await demo
    return directory


async def _headwater(*arguments: str) -> None:
    """Run the command line to its end. What it prints goes to a log, whose end tells of a failure."""
    log = RUNS / "output.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    process = await start_process(RoleSpec("headwater", headwater_command(*arguments), log))
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            status = await process.wait()
    finally:
        if process.returncode is None:
            await stop_process(process, stop_seconds=60)
    if status != 0:
        raise RuntimeError(f"headwater {arguments[0]} ended with status {status}:\n{last_lines(log)}")


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0
