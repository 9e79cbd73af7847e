"""Whole runs: recorded answers in place of sampling, everything else as it is."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from schemas import Event, Generation, Rollout
from schemas.codec import decode
from schemas.topics import GENERATIONS, ROLLOUTS
from tests.integration.headwater.conftest import Up, all_gone, descendants, headwater, processes
from tests.unit.headwater.test_report import KEYS
from wire.broker.embedded import EmbeddedKafka
from wire.kafka.log_reader import LogReader
from wire.kafka.settings import KafkaSettings

pytestmark = pytest.mark.timeout(600)


async def test_a_run_to_its_end_and_its_report(up: Up) -> None:
    up.demo("whole", 3)
    assert await up.ends() == 0, up.output
    run = up.runs / "whole"
    summary = json.loads((run / "report" / "summary.json").read_text())
    assert set(summary) == KEYS | {"run"}
    assert summary["updates"] == 3
    assert summary["groups_trained"] == 12
    assert summary["groups_unaccounted"] == summary["groups_trained_twice"] == 0
    assert summary["held_out_reward_before"] == summary["held_out_reward_after"] == pytest.approx(-0.5)
    assert summary["groups_admitted"] == summary["groups_trained"] + sum(summary["groups_dropped"].values())
    assert (run / "report" / "run.png").stat().st_size > 10_000
    assert len((run / "evaluations.jsonl").read_text().splitlines()) == 2 * 2 * (3 + 1)

    checked = headwater("ledger", "check", "whole", "--runs", str(up.runs))
    assert checked.returncode == 0, checked.stderr
    ledger = run / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    for damaged in (lines[:4] + lines[5:], [*lines, lines[4]]):
        ledger.write_bytes(b"".join(damaged))
        checked = headwater("ledger", "check", "whole", "--runs", str(up.runs), "--json")
        assert checked.returncode == 1
        assert json.loads(checked.stdout)["problems"]

    exported = headwater("export", "whole", str(up.runs / "model"), "--runs", str(up.runs))
    assert "policy version 1.3" in exported.stdout
    assert (up.runs / "model" / "config.json").exists()


async def test_a_run_ends_by_time(up: Up) -> None:
    up.demo("timed", 10_000, "training.max_seconds=6")
    assert await up.ends() == 0, up.output
    assert "ended by time after" in up.output
    summary = json.loads((up.runs / "timed" / "report" / "summary.json").read_text())
    assert summary["ended_by"] == "time"
    assert 0 < summary["updates"] < 10_000
    assert summary["groups_unaccounted"] == summary["groups_trained_twice"] == 0


async def test_roles_are_killed_and_training_goes_on(up: Up) -> None:
    up.demo("killed", 12)
    await up.until("— training")
    for role in ("sandbox", "rollout", "dispatch", "reward", "collect", "learner", "scheduler"):
        os.kill(up.role(role, "killed"), signal.SIGKILL)
        await up.until(f"{role} ended (killed by SIGKILL) and is started again")
        await asyncio.sleep(1.0)
    bootstrap = (up.runs / "killed" / "bootstrap").read_text().strip()
    live = await asyncio.to_thread(headwater, "ledger", "check", "killed", "--runs", str(up.runs))
    assert live.returncode == 0, live.stderr
    assert f"at {bootstrap}" in live.stdout
    assert await up.ends() == 0, up.output
    summary = json.loads((up.runs / "killed" / "report" / "summary.json").read_text())
    assert summary["updates"] == 12
    assert summary["groups_trained"] == 48
    assert summary["groups_unaccounted"] == summary["groups_trained_twice"] == 0


async def test_ctrl_c_leaves_nothing_and_the_run_goes_on(up: Up) -> None:
    up.demo("stopped", 200, "training.dtype=auto")
    await up.until("— training")
    dtype = up.dtype("stopped")
    assert f"dtype: sampler and learner calculate in {dtype} (GFLOP/s here" in up.output
    await asyncio.sleep(3)
    assert up.process is not None
    started = descendants(up.process.pid)
    assert len(started) >= 10
    bootstrap = (up.runs / "stopped" / "bootstrap").read_text().strip()
    if shutil.which("kcat"):  # .ci/run installs it
        await asyncio.to_thread(_examples, bootstrap)
    host, port = bootstrap.split(":")
    second = await asyncio.to_thread(headwater, "up", "--resume", "stopped", "--runs", str(up.runs))
    assert f"in use by process {up.process.pid}" in second.stderr
    up.interrupt()
    assert await up.ends(100) == 130, up.output
    assert "another Ctrl-C ends everything at once" in up.output
    assert f"headwater up --resume {(up.runs / 'stopped').resolve()}" in up.output
    assert await all_gone(started) == set()
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind((host, int(port)))
    assert not _control_groups(started)
    version = json.loads(_newest_position(up.runs / "stopped").read_text())["version"]

    up.start("up", "--resume", "stopped", "--set", f"training.max_updates={version + 2}")
    assert await up.ends() == 0, up.output
    summary = json.loads((up.runs / "stopped" / "report" / "summary.json").read_text())
    assert summary["updates"] == version + 2
    assert up.dtype("stopped") == summary["dtype"] == dtype, "a resume keeps the type"
    assert summary["groups_unaccounted"] == summary["groups_trained_twice"] == 0


async def test_a_killed_supervisor_leaves_no_child(up: Up) -> None:
    up.demo("orphans", 200)
    await up.until("— training")
    assert up.process is not None
    started = descendants(up.process.pid)
    up.process.kill()
    assert await all_gone(started) == set()


async def test_a_killed_broker_costs_no_group_and_no_resume(up: Up) -> None:
    up.demo("broker", 12)
    await up.until("— training")
    await asyncio.sleep(3)
    os.kill(_broker(up), signal.SIGKILL)
    await up.until("the broker ended (killed by SIGKILL) and is started again on its log")
    assert await up.ends() == 0, up.output
    summary = json.loads((up.runs / "broker" / "report" / "summary.json").read_text())
    assert summary["updates"] == 12
    assert summary["groups_trained"] == 48
    assert summary["groups_unaccounted"] == summary["groups_trained_twice"] == 0


async def test_after_kill_9_of_everything_a_resume_does_nothing_again_that_is_on_the_log(up: Up) -> None:
    up.demo("all", 200)
    await up.until("— training")
    run = up.runs / "all"
    async with asyncio.timeout(120):
        while not (checkpoints := sorted(run.glob("checkpoints/checkpoint-*/position.json"))):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    await asyncio.sleep(3)
    started = descendants(up.process.pid) if up.process else set[int]()
    up.kill()
    assert await all_gone(started) == set()
    log = await _read_log(run)
    admitted, sampled = _admitted(log), _sampled(log)
    assert len(admitted) > 4
    assert checkpoints

    version = json.loads(_newest_position(run).read_text())["version"]
    up.start("up", "--resume", "all", "--set", f"training.max_updates={version + 4}")
    assert await up.ends() == 0, up.output
    log = await _read_log(run)
    assert set(admitted) <= set(_admitted(log)), "the same log"
    assert len(set(_admitted(log))) == len(_admitted(log)), "no group is admitted twice"
    assert set(sampled) <= set(_sampled(log))
    assert len(_sampled(log)) == len(set(_sampled(log))), "no answer is sampled twice"
    summary = json.loads((run / "report" / "summary.json").read_text())
    assert summary["updates"] == version + 4
    assert summary["groups_unaccounted"] == summary["groups_trained_twice"] == 0


def _examples(bootstrap: str) -> None:
    """EXAMPLES.md's first line, as it stands: a prompt by kcat; kcat reads its rewards too."""
    text = (Path(__file__).parents[3] / "headwater" / "EXAMPLES.md").read_text()
    block = re.search(r"## Publish a prompt\n.*?\n\n((?:    [^\n]+\n)+)", text, re.DOTALL)
    assert block
    assert headwater("topics", "apply", "--domain", "sums", "--bootstrap", bootstrap).returncode == 0
    environment = {**os.environ, "B": bootstrap}
    subprocess.run(["bash", "-euc", block[1]], env=environment, check=True, timeout=30)
    read = ["kcat", "-C", "-e", "-q", "-b", bootstrap, "-t", "headwater.rewards"]
    deadline = time.monotonic() + 60
    while b'"prompt_id":"add-1"' not in subprocess.run(read, capture_output=True, check=True, timeout=30).stdout:
        assert time.monotonic() < deadline, "no reward of the prompt"


def _broker(up: Up) -> int:
    assert up.process is not None
    started = descendants(up.process.pid)
    [broker] = [pid for pid, command in processes() if pid in started and b"kafka.Kafka" in command]
    return broker


async def _read_log(run: Path) -> list[Event]:
    """Generations and rollouts of a run that is not up, partition after partition."""
    broker = EmbeddedKafka(run / "kafka", log_file=run / "logs" / "broker-read.log")
    settings = KafkaSettings(bootstrap=await broker.start())
    try:
        async with LogReader(settings) as reader:
            return [
                decode(record.value, topic)
                for topic in (GENERATIONS, ROLLOUTS)
                for record in await reader.read_all(topic.name)
            ]
    finally:
        await broker.stop()


def _admitted(log: list[Event]) -> list[str]:
    return [event.group_id for event in log if isinstance(event, Generation)]


def _sampled(log: list[Event]) -> list[tuple[str, int]]:
    return [(event.group_id, event.sample_index) for event in log if isinstance(event, Rollout)]


def _newest_position(run: Path) -> Path:
    return sorted(run.glob("checkpoints/checkpoint-*/position.json"))[-1]


def _control_groups(pids: set[int]) -> list[Path]:
    return [
        path for path in Path("/sys/fs/cgroup").rglob("headwater-*") if any(f"-{pid}-" in path.name for pid in pids)
    ]
