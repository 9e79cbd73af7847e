# ruff: noqa: ASYNC110 - other processes are watched from outside
"""What the front door's tests run: a tiny model, recorded answers, and the command line as processes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ANSWERS = (
    "```python\ndef f(x):\n    return x\n```",
    "def broken(",
    "```python\ndef solve(*a):\n    return 1\n```",
    "no code at all",
)
"""Of different rewards, so that groups have a spread; as UTF-8 bytes they are token ids below 256."""


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama whose vocabulary is the bytes, which the recorded engine's tokens are."""
    from transformers import LlamaConfig, LlamaForCausalLM

    directory = tmp_path_factory.mktemp("model") / "bytes"
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=256,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
        )
    ).save_pretrained(directory)
    return directory


class Up:
    """`headwater demo` and `headwater up` as processes of this test; whatever is left at its end is killed."""

    def __init__(self, runs: Path, model: Path) -> None:
        self.runs = runs
        self.model = model
        self.answers = runs.parent / "answers.jsonl"
        self.answers.parent.mkdir(parents=True, exist_ok=True)
        self.answers.write_text(json.dumps({"prompt": None, "answers": ANSWERS}) + "\n")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def output(self) -> str:
        return (self.runs.parent / "output").read_text(errors="replace")

    def demo(self, name: str, max_updates: int, *overrides: str) -> None:
        settings = (
            "engine.kind=recorded",
            f"engine.recorded_answers={self.answers}",
            "training.batch_groups=4",
            "training.dtype=float32",
            "sampling.group_size=4",
            "evaluation.prompts=3",
            "evaluation.new_template_prompts=1",
            *overrides,
        )
        options = [part for setting in settings for part in ("--set", setting)]
        self.start("demo", "--name", name, "--model", str(self.model), "--max-updates", str(max_updates), *options)

    def start(self, *arguments: str) -> None:
        with (self.runs.parent / "output").open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headwater", *arguments, "--runs", str(self.runs)],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    async def ends(self, seconds: float = 280.0) -> int:
        assert self.process is not None
        return await asyncio.to_thread(self.process.wait, seconds)

    async def until(self, what: str, seconds: float = 240.0) -> None:
        """Until the output has these words."""
        deadline = time.monotonic() + seconds
        while what not in self.output:
            assert self.process is not None
            assert self.process.poll() is None, f"it ended:\n{self.output}"
            assert time.monotonic() < deadline, f"no {what!r} in:\n{self.output}"
            await asyncio.sleep(0.1)

    def dtype(self, run: str) -> str:
        """What sampler and learner calculate in, as the roles read it."""
        config = tomllib.loads((self.runs / run / "config.toml").read_text())
        assert config["training"]["dtype"] == config["engine"]["dtype"] != "auto"
        return config["training"]["dtype"]

    def role(self, name: str, run: str) -> int:
        """The process id of a role of the run."""
        pid = self._running(name, run)
        assert pid is not None, f"{name} does not run"
        return pid

    async def started(self, name: str, run: str, seconds: float = 60.0) -> int:
        """The process id of a role that runs, or will soon."""
        deadline = time.monotonic() + seconds
        while (pid := self._running(name, run)) is None:
            assert self.process is not None
            assert self.process.poll() is None, f"it ended:\n{self.output}"
            assert time.monotonic() < deadline, f"{name} does not run:\n{self.output}"
            await asyncio.sleep(0.1)
        return pid

    def _running(self, name: str, run: str) -> int | None:
        wanted = (f"--run-directory\0{(self.runs / run).resolve()}\0--name\0{name}\0").encode()
        for pid, command in processes():
            if wanted in command:
                return pid
        return None

    def interrupt(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def up(tmp_path: Path, model_directory: Path) -> Iterator[Up]:
    # whatever a folder may be called
    started = Up(tmp_path / "a b é日本+%41#&=@:;[x]" / "runs", model_directory)
    yield started
    started.kill()


def processes() -> list[tuple[int, bytes]]:
    """(process id, command line with a NUL after each argument) of everything that runs."""
    found: list[tuple[int, bytes]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                found.append((int(entry.name), (entry / "cmdline").read_bytes()))
            except OSError:
                continue
    return found


def descendants(root: int) -> set[int]:
    """Every process below this one now."""
    parents: dict[int, int] = {}
    for pid, _ in processes():
        try:
            parents[pid] = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    below: set[int] = set()
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if (parent == root or parent in below) and pid not in below}
        below |= more
        grown = bool(more)
    return below


async def all_gone(pids: set[int], seconds: float = 10.0) -> set[int]:
    """Those that still run after so long (zombies do not)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(_alive(pid) for pid in pids):
        await asyncio.sleep(0.05)
    return {pid for pid in pids if _alive(pid)}


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def headwater(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "headwater", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "160"},
    )
