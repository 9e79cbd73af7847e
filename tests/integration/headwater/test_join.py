"""A run that any machine joins with nothing but the broker's address and the run's name."""

import json
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.integration.headwater.conftest import ANSWERS
from tests.integration.headwater.hosts import Host, hosts, s3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
KAFKA, S3, METRICS = 9092, 7070, 9464
_GET = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"


def test_three_machines_train_one_run(tmp_path: Path, model_directory: Path) -> None:
    """One has the broker, S3 and `up`; one samples and learns; a third goes on learning where the second left off.

    That one is lost: what it had done since its last checkpoint is done again, on the second, and no group is lost.
    """
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"prompt": None, "answers": ANSWERS}) + "\n")
    with hosts(tmp_path, ["first", "second", "third"]) as (first, second, third):
        # the model too is only where the run is started
        shutil.copytree(model_directory, first.directory / "model")
        environment = s3(first, S3, "headwater")
        for host in (first, second, third):
            host.environment = {**environment, "HEADWATER_CACHE": str(host.directory / "cache")}
        address = ("--host", first.address, "--port", str(KAFKA))
        first.headwater("broker", "broker", "start", "--data", "kafka", *address)
        first.until("broker", "Apache Kafka answers at")
        (first.directory / "run.toml").write_text(_configuration(first.directory / "model", answers))

        up = first.headwater("up", *_up(first), "run.toml")
        first.until("up", "— training")
        sampling = second.headwater("rollout", "worker", "rollout", *_join(first), "--metrics-host", second.address,
                                    "--metrics-port", str(METRICS))  # fmt: skip
        learning = second.headwater("learner", "learner", *_join(first))
        second.reaches(second.address, METRICS)
        first.run(sys.executable, "-c", _GET, f"http://{second.address}:{METRICS}/metrics")
        assert up.wait(300) == 0, _said(first, second)
        assert learning.wait(60) == 0, _said(first, second)
        summary = _summary(first)
        assert summary["updates"] == 3
        assert summary["groups_trained"] == 6
        assert summary["groups_unaccounted"] == summary["groups_trained_twice"] == 0
        assert not (second.directory / "runs" / "joined" / "config.toml").exists()
        metrics = first.run(sys.executable, "-c", _GET, f"http://{second.address}:{METRICS}/metrics")
        assert "headwater_weights_version 3.0" in metrics, "what it fetched from S3"

        up = first.headwater(
            "up-again", "up", "--resume", "joined", *_up(first)[1:], "--set", "training.max_updates=15"
        )
        first.until("up-again", "— training")
        lost = third.headwater("learner", "learner", *_join(first))
        third.until("learner", "update 2.5 trained")
        lost.send_signal(signal.SIGSTOP)
        checked = first.headwater("check", "ledger", "check", "joined")
        assert checked.wait(60) == 0, _said(first)
        assert "the learner writes its own on another machine" in first.output("check").read_text()
        lost.kill()
        assert "begins at version 3" in third.output("learner").read_text()
        learning = second.headwater("learner-again", "learner", *_join(first))
        assert up.wait(300) == 0, _said(first, second, third)
        assert learning.wait(60) == 0, _said(first, second, third)
        begun = re.search(r"incarnation 3 begins at version (\d+)", second.output("learner-again").read_text())
        assert begun
        assert int(begun[1]) in (4, 6, 8, 10, 12, 14), "the third's checkpoint, not the second's own of before"
        summary = _summary(first)
        assert summary["updates"] == 15
        assert summary["groups_trained"] == 30
        assert summary["groups_unaccounted"] == summary["groups_trained_twice"] == 0
        exported = first.headwater("export", "export", "joined", "exported")
        assert exported.wait(60) == 0
        assert "policy version 3.15" in first.output("export").read_text()
        sampling.send_signal(signal.SIGTERM)
        assert sampling.wait(30) == 0


def _configuration(model: Path, answers: Path) -> str:
    return f"""
name = "joined"
model = "{model}"
[[data]]
kind = "functions"
count = 400
[training]
batch_groups = 2
max_staleness = 1
max_updates = 3
learning_rate = 1e-3
dtype = "float32"
threads = 1
checkpoint_every_updates = 2
[sampling]
group_size = 4
max_new_tokens = 64
[engine]
kind = "recorded"
dtype = "float32"
recorded_answers = "{answers}"
[storage]
url = "s3://headwater/runs"
"""


def _up(first: Host) -> list[str]:
    return ["up", "--bootstrap", f"{first.address}:{KAFKA}", "--elsewhere", "learner", "--elsewhere", "rollout"]


def _join(first: Host) -> list[str]:
    return ["--bootstrap", f"{first.address}:{KAFKA}", "--run", "joined"]


def _summary(first: Host) -> dict[str, float]:
    return json.loads((first.directory / "runs" / "joined" / "report" / "summary.json").read_text())


def _said(*machines: Host) -> str:
    return "\n".join(f"{path}\n{path.read_text()}" for host in machines for path in host.directory.glob("*.out"))
