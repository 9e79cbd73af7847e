"""Seconds of training to a reward of 0.6: this project, on policy and one update behind, and TRL's GRPOTrainer.

The same 512 prompts in the same order, the same settings, float32, all cores for each side, one after the other. Clocks
run from the begin of training: models are loaded, roles are up.
"""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from headwater.measure.held_out import training_prompts
from headwater.run.cores import usable_cores
from headwater.run.demo import demo_config
from headwater.run.models import model_directory
from headwater.run.processes import RoleSpec, headwater_command, last_lines, start_process, stop_process
from tests.bench.measure import Measurement
from tests.bench.output import DIRECTORY, steps
from tests.bench.small_model import DEMO_MODEL

REQUIREMENTS = ("trl==1.16.0", "datasets==5.2.0")
"""What TRL needs beyond ours: it shares torch, transformers and accelerate with us, and so their kernels."""
ENVIRONMENT = DIRECTORY / "trl"
RUNS = DIRECTORY / "runs"
PROMPTS = 512
REWARD = 0.6
SMOOTHED_UPDATES = 3
"""The reward of an update is the mean of 32 answers to 4 prompts: the goal is reached by the mean of three updates."""
LIMIT_SECONDS = 900.0
LEARNING_RATE = 1e-5
Update = tuple[float, float]
"""Seconds since the begin of training, and the mean reward of the answers trained on."""


async def run(quick: bool) -> dict[str, Any]:
    """Ratios of the seconds to the goal, ours over TRL's; rewards by update and by second of each side."""
    groups, group_size, max_new_tokens, max_updates = (2, 4, 24, 2) if quick else (4, 8, 48, 40)
    environment = await asyncio.to_thread(_environment)
    sides: dict[str, AsyncGenerator[Update]] = {
        **{
            f"headwater_eta_{staleness}": _headwater(staleness, groups, group_size, max_new_tokens, max_updates)
            for staleness in (0, 1)
        },
        "trl": _trl(environment, groups, group_size, max_new_tokens, max_updates),
    }
    result = Measurement("trl", repeats=1)
    goals: dict[str, float | None] = {}
    for name, updates in sides.items():
        with steps(name, max_updates) as advance:
            curve = [update async for update in _until_goal(updates, advance)]
        goals[name] = seconds_to_goal(curve)
        result.figures[name] = {
            "seconds_to_goal": goals[name],
            "updates": len(curve),
            "seconds_per_update": round(curve[-1][0] / len(curve), 1) if curve else None,
            "update_seconds": [round(seconds, 1) for seconds, _ in curve],
            "update_rewards": [round(reward, 3) for _, reward in curve],
        }
    for name, seconds in goals.items():
        if name != "trl" and seconds and goals["trl"]:
            result.ratios[f"{name}_over_trl_seconds_to_goal"] = round(seconds / goals["trl"], 3)
    result.figures |= {
        "goal": f"mean reward of {SMOOTHED_UPDATES} updates at least {REWARD}",
        "answers_an_update": groups * group_size,
        "group_size": group_size,
        "max_new_tokens": max_new_tokens,
        "learning_rate": LEARNING_RATE,
        "dtype": "float32",
        "model": DEMO_MODEL,
        "trl_version": REQUIREMENTS[0],
    }
    return result.as_json()


def seconds_to_goal(curve: list[Update]) -> float | None:
    """When the mean reward of the newest updates first reached the goal; None: it did not."""
    for end in range(SMOOTHED_UPDATES, len(curve) + 1):
        window = [reward for _, reward in curve[end - SMOOTHED_UPDATES : end]]
        if sum(window) / len(window) >= REWARD:
            return round(curve[end - 1][0], 1)
    return None


async def _until_goal(updates: AsyncGenerator[Update], advance: Any) -> AsyncIterator[Update]:
    curve: list[Update] = []
    async with aclosing(updates):
        async for update in updates:
            curve.append(update)
            advance()
            yield update
            if seconds_to_goal(curve) is not None or update[0] > LIMIT_SECONDS:
                return


async def _headwater(
    staleness: int, groups: int, group_size: int, max_new_tokens: int, max_updates: int
) -> AsyncGenerator[Update]:
    """The demo's roles with the bench's settings: on policy each side has all cores in turn, else they are shared."""
    name = f"trl-eta-{staleness}"
    directory = RUNS / name
    shutil.rmtree(directory, ignore_errors=True)
    threads = usable_cores() if staleness == 0 else max(1, usable_cores() // 2)
    settings = [
        *_settings(groups, group_size, max_new_tokens),
        f"training.max_staleness={staleness}",
        f"training.threads={threads}",
        f"engine.threads={threads}",
    ]
    overrides = [part for setting in settings for part in ("--set", setting)]
    command = headwater_command(
        "demo", "--name", name, "--runs", str(RUNS), "--max-updates", str(max_updates), *overrides
    )
    process = await start_process(RoleSpec("headwater", command, RUNS / f"{name}.log"))
    ended = asyncio.create_task(process.wait())
    seen = 0
    try:
        while not ended.done():
            await asyncio.wait([ended], timeout=0.5)
            lines = _lines(directory / "metrics.jsonl")
            for line in lines[seen:]:
                begun = lines[0]["time"] - sum(lines[0]["seconds"].values())
                yield line["time"] - begun, line["reward_mean"]
            seen = len(lines)
        if ended.result() != 0:
            raise RuntimeError(f"headwater demo failed:\n{last_lines(RUNS / f'{name}.log')}")
    finally:
        if not ended.done():
            process.send_signal(signal.SIGINT)
            await asyncio.wait([ended], timeout=120)
            await stop_process(process, stop_seconds=10)


async def _trl(
    environment: Path, groups: int, group_size: int, max_new_tokens: int, max_updates: int
) -> AsyncGenerator[Update]:
    scratch = DIRECTORY / "trl-run"
    scratch.mkdir(parents=True, exist_ok=True)
    config = demo_config(model=DEMO_MODEL, seed=0, name="trl", overrides=_settings(groups, group_size, max_new_tokens))
    (data,) = config.data
    prompts = [
        {"prompt": msgspec.to_builtins(prompt.messages), "grader": msgspec.json.encode(prompt.grader).decode()}
        for prompt in training_prompts(data, config, range(PROMPTS))  # pyright: ignore[reportArgumentType]
    ]
    (scratch / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
    settings = {
        "model": str(await model_directory(DEMO_MODEL)),
        "prompts": str(scratch / "prompts.jsonl"),
        "scratch": str(scratch),
        "grader_command": [sys.executable, "-m", "tests.bench.trl_grader"],
        "answers": groups * group_size,
        "group_size": group_size,
        "max_new_tokens": max_new_tokens,
        "learning_rate": LEARNING_RATE,
        "max_updates": max_updates,
    }
    (scratch / "settings.json").write_text(json.dumps(settings))
    with (scratch / "errors.log").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            environment,
            "-P",  # this folder has files of the names of packages
            str(Path(__file__).with_name("trl_side.py")),
            str(scratch / "settings.json"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                if line.startswith(b'{"seconds"'):
                    told = json.loads(line)
                    yield told["seconds"], told["reward"]
            if await process.wait() != 0:
                raise RuntimeError(f"TRL failed:\n{last_lines(scratch / 'errors.log')}")
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


def _settings(groups: int, group_size: int, max_new_tokens: int) -> list[str]:
    """What both sides do, as overrides of the demo: answers end with the model's own end, and nothing is saved."""
    return [
        f"data=[{{kind='functions', count={PROMPTS}}}]",
        "training.dtype=float32",
        "engine.dtype=float32",
        f"training.batch_groups={groups}",
        f"training.learning_rate={LEARNING_RATE}",
        "training.warmup_updates=0",
        "training.max_seconds=100000",
        "training.checkpoint_every_updates=1000",
        f"sampling.group_size={group_size}",
        f"sampling.max_new_tokens={max_new_tokens}",
        "sampling.stop=[]",
        f"engine.max_batch={groups * group_size}",
        "evaluation.before_and_after=false",
    ]


def _environment() -> Path:
    """The interpreter of TRL's environment, made the first time. Ours is beside it, behind what it has itself."""
    python = ENVIRONMENT.resolve() / "bin" / "python"
    ready = ENVIRONMENT / "-".join(REQUIREMENTS).replace("==", "-")
    if not ready.exists():
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        venv.create(ENVIRONMENT, with_pip=True)
        packages = next(ENVIRONMENT.glob("lib/python3*/site-packages"))
        (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS]
        done = subprocess.run(install, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"TRL's environment could not be made:\n{done.stderr[-2000:]}")
        ready.touch()
    return python


def _lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of the file so far."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
