"""A learner's work in a storage: another machine goes on with it, and one that was superseded leaves nothing."""

from pathlib import Path

import msgspec
import pytest

from learner.book.ledger import LEDGER, ROLLED_BACK
from learner.book.position import Position
from learner.book.stored import METRICS, Stored, stored_at
from learner.errors import CheckpointError, Superseded


class Machine:
    """One that a learner may run on: its own run directory, the storage of all."""

    def __init__(self, directory: Path, storage: Path) -> None:
        self.directory = directory
        (directory / "checkpoints").mkdir(parents=True)
        self.stored = Stored(storage.as_uri(), directory)

    def save(self, incarnation: int, sequence: int, version: int, keep: int = 2) -> Path:
        checkpoint = self.directory / "checkpoints" / f"checkpoint-{incarnation:06d}-{sequence:06d}"
        (checkpoint / "deepspeed").mkdir(parents=True)
        (checkpoint / "deepspeed" / "model.pt").write_text(f"weights {version}")
        position = Position(incarnation=incarnation, version=version)
        (checkpoint / "position.json").write_bytes(msgspec.json.encode(position))
        self.stored.keep_checkpoint(checkpoint, incarnation, keep)
        return checkpoint

    def write(self, ledger: str, metrics: str = "") -> None:
        (self.directory / LEDGER).write_text(ledger)
        (self.directory / METRICS).write_text(metrics)


@pytest.fixture
def one(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "one", tmp_path / "storage")


@pytest.fixture
def other(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "other", tmp_path / "storage")


def test_where_the_storage_is_the_run_directory_nothing_is_copied(tmp_path: Path) -> None:
    assert stored_at(tmp_path.as_uri(), tmp_path) is None
    assert stored_at((tmp_path / "x").as_uri(), tmp_path) is not None


def test_lives_are_numbered_over_all_machines_and_the_stream(one: Machine, other: Machine) -> None:
    assert one.stored.take_incarnation(0) == 1
    assert other.stored.take_incarnation(0) == 2
    assert one.stored.take_incarnation(7) == 8
    with pytest.raises(Superseded, match="incarnation 2 and has stopped: incarnation 8"):
        other.stored.check_newest(2)
    one.stored.check_newest(8)


def test_another_machine_goes_on_with_checkpoint_ledger_and_metrics(one: Machine, other: Machine) -> None:
    assert other.stored.fetch_checkpoint() is None
    one.write("a\nb\n", "m1\n")
    one.save(1, 1, version=3)
    one.write("a\nb\nc\n{torn", "m1\nm2\n")
    one.save(1, 2, version=4)

    other.write("what a learner that was elsewhere had written\n")
    found = other.stored.fetch_checkpoint()
    assert found == other.directory / "checkpoints" / "checkpoint-000001-000002"
    assert (found / "deepspeed" / "model.pt").read_text() == "weights 4"
    assert (other.directory / LEDGER).read_text() == "a\nb\nc\n"
    assert (other.directory / METRICS).read_text() == "m1\nm2\n"
    assert (other.directory / ROLLED_BACK).read_text() == "what a learner that was elsewhere had written\n"
    position = other.stored.newest_position()
    assert position is not None
    assert position.version == 4


def test_on_the_same_machine_lines_after_the_checkpoint_stay_to_be_rolled_back(one: Machine) -> None:
    one.write("a\n")
    one.save(1, 1, version=1)
    one.write("a\nb\n")
    one.stored.fetch_checkpoint()
    assert (one.directory / LEDGER).read_text() == "a\nb\n"
    assert not (one.directory / ROLLED_BACK).exists()


def test_a_checkpoint_without_its_position_is_none(one: Machine, other: Machine, tmp_path: Path) -> None:
    one.save(1, 1, version=1)
    cut_off = tmp_path / "storage" / "checkpoints" / "checkpoint-000001-000002" / "deepspeed"
    cut_off.mkdir(parents=True)
    (cut_off / "model.pt").write_text("half")
    found = other.stored.fetch_checkpoint()
    assert found is not None
    assert found.name == "checkpoint-000001-000001"
    one.save(1, 3, version=2)
    assert not cut_off.parent.exists(), "the next one clears it away"


def test_all_but_the_newest_go(one: Machine, tmp_path: Path) -> None:
    for sequence in (1, 2, 3, 4):
        one.save(1, sequence, version=sequence, keep=2)
    kept = sorted(path.name for path in (tmp_path / "storage" / "checkpoints").glob("checkpoint-*"))
    assert kept == ["checkpoint-000001-000003", "checkpoint-000001-000004"]
    for version in ("1.1", "1.2", "1.10"):
        snapshot = one.directory / "weights" / version
        snapshot.mkdir(parents=True)
        (snapshot / "model.safetensors").write_text(version)
        assert one.stored.keep_snapshot(snapshot) == (tmp_path / "storage" / "weights" / version).as_uri()
    one.stored.prune_snapshots(2)
    assert sorted(path.name for path in (tmp_path / "storage" / "weights").iterdir()) == ["1.10", "1.2"]


def test_one_that_was_superseded_saves_nothing(one: Machine, other: Machine) -> None:
    first = one.stored.take_incarnation(0)
    second = other.stored.take_incarnation(0)
    other.save(second, 1, version=5)
    with pytest.raises(Superseded):
        one.save(first, 1, version=9)
    position = one.stored.newest_position()
    assert position is not None
    assert position.version == 5


def test_the_machine_of_up_gets_what_it_reports_from(one: Machine, other: Machine) -> None:
    one.write("a\n", "m1\n")
    one.save(1, 1, version=1)
    snapshot = one.directory / "weights" / "1.1"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_text("trained")
    one.stored.keep_snapshot(snapshot)
    other.stored.bring_home()
    assert (other.directory / LEDGER).read_text() == "a\n"
    assert (other.directory / METRICS).read_text() == "m1\n"
    assert (other.directory / "weights" / "1.1" / "model.safetensors").read_text() == "trained"
    assert list((other.directory / "checkpoints").iterdir()) == [], "gigabytes that nobody there needs"


def test_a_position_of_another_release_is_said(one: Machine, tmp_path: Path) -> None:
    one.save(1, 1, version=1)
    path = tmp_path / "storage" / "checkpoints" / "checkpoint-000001-000001" / "position.json"
    path.write_text('{"version": "four"}')
    with pytest.raises(CheckpointError, match="no readable position"):
        one.stored.newest_position()
