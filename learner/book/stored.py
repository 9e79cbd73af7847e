"""A run's checkpoints and snapshots in its storage, where that is another place than the learner's run directory.

    checkpoints/incarnation-N                        taken by one learner, wherever it runs
    checkpoints/checkpoint-<incarnation>-<sequence>/ as on the learner's disk, with the ledger and metrics.jsonl beside;
                                                     position.json comes last and goes first: without it there is none
    weights/<incarnation>.<version>/                 announced when all of it is there

The learner writes into its run directory, then copies here. What counts at a resume is what is here, so that it may
go on on any machine.
"""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from learner.book.checkpoints import POSITION, CheckpointName, checkpoint_name
from learner.book.feed import Ended
from learner.book.incarnation import newest_of, superseded, take_incarnation
from learner.book.ledger import LEDGER, ROLLED_BACK, ledger_lines
from learner.book.position import Position
from learner.durable import new_directory
from learner.errors import CheckpointError
from schemas import PolicyVersion
from wire.storage import Storage
from wire.uris import uri_of

METRICS = "metrics.jsonl"
_SNAPSHOT = re.compile(r"(\d+)\.(\d+)")


def stored_at(uri: str, run_directory: Path) -> "Stored | None":
    """None where the storage is the run directory itself: nothing need be copied."""
    return None if uri == uri_of(run_directory) else Stored(uri, run_directory)


class Stored:
    """All of it blocks, and raises StorageFailed."""

    def __init__(self, uri: str, run_directory: Path) -> None:
        """`run_directory` is this machine's own."""
        self._checkpoints = Storage(uri).below("checkpoints")
        self._weights = Storage(uri).below("weights")
        self._run_directory = run_directory

    def take_incarnation(self, above: int) -> int:
        """The lowest number over all taken anywhere and over `above`."""
        number = max(above, newest_of(self._checkpoints.names()))
        while True:
            number = take_incarnation(self._run_directory / "checkpoints", number)
            if self._checkpoints.take(f"incarnation-{number}"):
                return number

    def check_newest(self, incarnation: int) -> None:
        """Raise Superseded when another learner has taken a higher number."""
        newest = newest_of(self._checkpoints.names())
        if newest > incarnation:
            raise superseded(incarnation, newest, self._checkpoints.uri)

    def newest_checkpoint(self) -> CheckpointName | None:
        """The newest whole one here."""
        for name in reversed(self._named()):
            if self._checkpoints.below(str(name)).has(POSITION):
                return name
        return None

    def newest_position(self) -> Position | None:
        """Its position. Raises CheckpointError for one that this release does not read."""
        name = self.newest_checkpoint()
        if name is None:
            return None
        try:
            return msgspec.json.decode(self._checkpoints.below(str(name)).read(POSITION), type=Position)
        except msgspec.DecodeError as error:
            raise CheckpointError(f"{self._checkpoints.uri}/{name} has no readable position: {error}") from error

    def newest_ledger(self) -> list[Ended]:
        """The ledger as it was when the newest checkpoint was saved. Raises LedgerDamaged."""
        name = self.newest_checkpoint()
        if name is None:
            return []
        stored = self._checkpoints.below(str(name))
        return ledger_lines(stored.read(LEDGER), f"{stored.uri}/{LEDGER}") if stored.has(LEDGER) else []

    def fetch_checkpoint(self) -> Path | None:
        """The newest one, in this machine's run directory, with ledger and metrics of then; None: there is none yet."""
        name = self.newest_checkpoint()
        if name is None:
            return None
        target = self._run_directory / "checkpoints" / str(name)
        if not target.exists():
            with new_directory(target) as scratch:
                self._checkpoints.below(str(name)).get(scratch)
        _bring_back(target / LEDGER, self._run_directory / LEDGER, self._run_directory / ROLLED_BACK)
        _bring_back(target / METRICS, self._run_directory / METRICS)
        return target

    def keep_checkpoint(self, checkpoint: Path, incarnation: int, keep: int) -> None:
        """Copy it here; all but the newest `keep` go. Raises Superseded, and then it does not count."""
        for name in (LEDGER, METRICS):
            if (source := self._run_directory / name).exists():
                # what is being appended to: up to the last whole line
                (checkpoint / name).write_bytes(source.read_bytes().rpartition(b"\n")[0] + b"\n")
        self.check_newest(incarnation)
        self._checkpoints.below(checkpoint.name).put(checkpoint, last=POSITION)
        named = self._named()
        whole = [name for name in named if self._checkpoints.below(str(name)).has(POSITION)]
        for name in named:
            if name in whole[:-keep] or name not in whole:
                self._checkpoints.below(str(name)).remove(first=POSITION)

    def keep_snapshot(self, snapshot: Path) -> str:
        """Copy it here; returns its URI. Nothing of it is announced yet."""
        stored = self._weights.below(snapshot.name)
        stored.put(snapshot)
        return stored.uri

    def prune_snapshots(self, keep: int) -> None:
        """Delete all but the newest `keep`."""
        for version in self._versions()[:-keep]:
            self._weights.below(str(version)).remove()

    def bring_home(self) -> None:
        """Of a learner elsewhere, what reports, `export` and `ledger check` read: into this machine's run directory."""
        name = self.newest_checkpoint()
        for file in (LEDGER, METRICS) if name is not None else ():
            stored = self._checkpoints.below(str(name))
            if stored.has(file):
                (self._run_directory / file).write_bytes(stored.read(file))
        for version in self._versions()[-1:]:
            target = self._run_directory / "weights" / str(version)
            if not target.exists():
                with new_directory(target) as scratch:
                    self._weights.below(str(version)).get(scratch)

    def _named(self) -> list[CheckpointName]:
        return sorted(_known(checkpoint_name(name) for name in self._checkpoints.names()))

    def _versions(self) -> list[PolicyVersion]:
        matches = _known(_SNAPSHOT.fullmatch(name) for name in self._weights.names())
        return sorted(PolicyVersion(int(match[1]), int(match[2])) for match in matches)


def _known[T](found: Iterable[T | None]) -> list[T]:
    return [one for one in found if one is not None]


def _bring_back(saved: Path, here: Path, aside: Path | None = None) -> None:
    """Put a file as it was saved in place of one that does not begin with it; that one's lines go `aside`."""
    if not saved.exists():
        return
    present = here.read_bytes() if here.exists() else b""
    if present.startswith(saved.read_bytes()):
        return
    if aside is not None and present:
        with aside.open("ab") as file:
            file.write(present)
    shutil.copyfile(saved, here)
