"""One run's files: who writes what, and the lock that keeps a second `up` out.

runs/<name>/
    config.toml           the settings as merged           supervisor
    logs/<role>.log       output of each role              the role
    logs/<role>.port      its /metrics port                the role
    logs/up.log           what `up` told people            supervisor
    metrics.jsonl         one line an update               learner
    ledger.jsonl          one line an ended group          learner
    evaluations.jsonl     one line an evaluation group     recorder
    checkpoints/ weights/                                  learner
    kafka/                the log                          the embedded broker
    state/<role>/         journals of what is in hand      the role
    report/                                                `report`
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import RunDirectoryError


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The paths in a run directory."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def ledger(self) -> Path:
        return self.path / "ledger.jsonl"

    @property
    def evaluations(self) -> Path:
        return self.path / "evaluations.jsonl"

    @property
    def phases(self) -> Path:
        return self.path / "phases.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def weights(self) -> Path:
        return self.path / "weights"

    @property
    def report(self) -> Path:
        return self.path / "report"

    @property
    def kafka(self) -> Path:
        """The embedded broker's data: the log outlives it."""
        return self.path / "kafka"

    @property
    def bootstrap(self) -> Path:
        """The address of the broker that serves the run now."""
        return self.path / "bootstrap"

    def serving_broker(self) -> str | None:
        """The broker of the run, if the run is up. A copied directory, or one whose `up` was killed, is not."""
        try:
            with (self.path / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return self.bootstrap.read_text().strip() if self.bootstrap.exists() else None
        except FileNotFoundError:
            return None
        return None

    def run_id(self) -> str:
        """The run's own id: its name, and something that no other run of this name on the same log has."""
        path = self.path / "run_id"
        if not path.exists():
            path.write_text(f"{self.name}-{secrets.token_hex(3)}\n")
        return path.read_text().strip()

    def belong_to(self, run_id: str) -> None:
        """Make it that run's directory on this machine. Raises RunDirectoryError when it is another's."""
        self.path.mkdir(parents=True, exist_ok=True)
        path = self.path / "run_id"
        if not path.exists():
            path.write_text(f"{run_id}\n")
        elif self.run_id() != run_id:
            raise RunDirectoryError(
                f"{self.path} is the directory of run {self.run_id()}, not of {run_id}: give another --run-directory"
            )

    def log(self, role: str) -> Path:
        return self.logs / f"{role}.log"

    def port(self, role: str) -> Path:
        return self.logs / f"{role}.port"

    def state(self, role: str) -> Path:
        return self.path / "state" / role

    @contextmanager
    def sole(self, role: str) -> Generator[None]:
        """Be the one process of that name here: two would be one member of a consumer group.

        Raises RunDirectoryError.
        """
        self.state(role).mkdir(parents=True, exist_ok=True)
        with (self.state(role) / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunDirectoryError(f"{role} runs in {self.path} already: give this one another --name") from error
            yield

    def create(self) -> None:
        """Make the directories. Harmless when they are there."""
        for directory in (self.logs, self.checkpoints, self.weights, self.report):
            directory.mkdir(parents=True, exist_ok=True)

    def must_exist(self) -> None:
        """Raises RunDirectoryError when this is no run."""
        if not self.config.is_file():
            raise RunDirectoryError(f"{self.path} is no run directory: it has no config.toml")

    @contextmanager
    def lock(self) -> Generator[None]:
        """Hold the run. The kernel lets go when this process ends, whatever ends it. Raises RunDirectoryError."""
        descriptor = self._locked()
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            # refused before anything was done: still ours alone, so nobody else's can be taken away
            if self.path.is_dir() and [path.name for path in self.path.iterdir()] == ["lock"]:
                shutil.rmtree(self.path)
            os.close(descriptor)

    def _locked(self) -> int:
        """A descriptor that holds the lock. Raises RunDirectoryError when another process does."""
        path = self.path / "lock"
        while True:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
            except BlockingIOError as error:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
                os.close(descriptor)
                raise RunDirectoryError(
                    f"{self.path} is in use by process {holder or '?'}: stop it first, or give this run another name"
                ) from error
            os.close(descriptor)  # of a directory that its holder took away meanwhile
