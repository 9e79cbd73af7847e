"""The command line from outside: quick, and clear about what is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = (
    "demo", "init", "up", "worker", "learner", "topics apply", "publish", "rewards", "score", "eval", "status",
    "report", "export", "doctor", "ledger check", "judge", "cases",
)  # fmt: skip


def headwater(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", **environment},
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    shown = headwater(*command.split(), "--help")
    assert shown.returncode == 0, shown.stderr
    assert f"Example: headwater {command.split()[0]}" in shown.stdout


def test_help_loads_neither_torch_nor_faust_and_is_quick() -> None:
    code = (
        "import resource, sys\n"
        "sys.argv = ['headwater', '--help']\n"
        "from headwater.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "assert not {'torch', 'faust', 'aiokafka', 'transformers'} & set(sys.modules), 'heavy'\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "assert used.ru_utime + used.ru_stime < 0.5, used\n"
    )
    # CPU time: what the clock says on a busy machine says nothing about the command
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("up absent.toml", "headwater init absent.toml"),
        ("up", "give either a configuration"),
        ("up --resume absent", "is no run directory"),
        ("report absent", "is no run directory"),
        ("worker sandbx --run-directory x --bootstrap b:1", "did you mean 'sandbox'?"),
        ("status", "no broker was named, and no run is up here"),
        ("status --bootstrap 127.0.0.1:9", "no Kafka broker answers at 127.0.0.1:9"),
        ("publish absent.jsonl --bootstrap 127.0.0.1:9", "absent.jsonl: no such file"),
        ("rewards --bootstrap 127.0.0.1:9", "no Kafka broker answers"),
        ("worker dispatch --run-directory x --bootstrap 127.0.0.1:9", "no Kafka broker answers"),
        ("worker scheduler --run-directory x --bootstrap 127.0.0.1:9", "give --run NAME"),
        ("worker scheduler --bootstrap 127.0.0.1:9", "give --run NAME"),
        ("learner --run x --bootstrap 127.0.0.1:9", "no Kafka broker answers"),
        ("init x.toml --name a/b", "'a/b' cannot name a run"),
        ("cases . --allow-unenforced foo", "--allow-unenforced foo: it is none of"),
        ("score --dataset absent.jsonl", "absent.jsonl: no such file"),
        ("demo --set trainning.max_updates=1", "did you mean `training`?"),
        ("demo --model ./absent", "no model './absent'"),
    ],
)
def test_what_is_wrong_is_one_message_without_a_traceback(tmp_path: Path, arguments: str, message: str) -> None:
    shown = headwater(*arguments.split(), cwd=tmp_path)
    assert shown.returncode not in (0, 2), shown.stdout
    assert message in shown.stderr + shown.stdout
    assert "Traceback" not in shown.stderr


def test_a_metrics_port_in_use(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        shown = headwater(
            *f"worker reward --run-directory {tmp_path} --bootstrap 127.0.0.1:9 --metrics-port {port}".split()
        )
    assert shown.returncode != 0
    assert f"/metrics cannot be served at 127.0.0.1, port {port} (Address already in use)" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_security_that_makes_no_sense_is_one_message(tmp_path: Path) -> None:
    shown = headwater("rewards", "--bootstrap", "b:1", cwd=tmp_path, HEADWATER_KAFKA_USERNAME="me")
    assert shown.returncode == 1
    assert "error: a username has no effect with PLAINTEXT" in shown.stderr


def test_init_writes_once_and_up_checks_it(tmp_path: Path) -> None:
    assert headwater("init", "run.toml", "--name", "mine", cwd=tmp_path).returncode == 0
    again = headwater("init", "run.toml", cwd=tmp_path)
    assert again.returncode == 1
    assert "is there already" in again.stderr
    assert "is a valid run: mine" in headwater("up", "run.toml", "--check", cwd=tmp_path).stdout
    wrong = headwater("up", "run.toml", "--check", cwd=tmp_path, HEADWATER_TRAINING__MAX_UPDATE="3")
    assert "did you mean `max_updates`" in wrong.stderr
    absent = headwater("up", "run.toml", "--check", "--set", "model=./absent", cwd=tmp_path)
    assert (absent.returncode, "no model './absent'" in absent.stderr) == (1, True)
    data = '\n[[data]]\nkind = "file"\nname = "mine"\npath = "absent.jsonl"\ndomain = "sums"\n'
    (tmp_path / "file.toml").write_text((tmp_path / "run.toml").read_text() + data)
    for arguments in (["--check"], []):
        missing = headwater("up", "file.toml", *arguments, cwd=tmp_path)
        assert (missing.returncode, "absent.jsonl: no such file" in missing.stderr) == (1, True), missing.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_without_its_broker_can_be_started_again(tmp_path: Path) -> None:
    assert headwater("init", "run.toml", "--name", "mine", cwd=tmp_path).returncode == 0
    for _ in range(2):
        refused = headwater("up", "run.toml", "--bootstrap", "127.0.0.1:9", cwd=tmp_path)
        assert refused.returncode == 1
        assert "no Kafka broker answers at 127.0.0.1:9" in refused.stderr
