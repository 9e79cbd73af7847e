"""An event that kills its worker is known at the third start."""

import os
from pathlib import Path

from tests.unit.wire.doubles import record
from wire.inflight import DEATHS_TO_POISON, KEEP_SECONDS, Journal


def test_an_event_found_at_the_third_start_in_a_row_is_poisoned(tmp_path: Path) -> None:
    culprit = record(b"culprit", 7)
    assert Journal(tmp_path).begin(culprit) == 0  # the first start: dies over it
    second = Journal(tmp_path)
    assert second.suspect(culprit)
    assert second.begin(culprit) == 1  # dies again
    assert Journal(tmp_path).begin(culprit) == DEATHS_TO_POISON


def test_one_that_was_handled_leaves_no_mark(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.begin(record(b"good", 1))
    journal.end(record(b"good", 1))
    assert list(tmp_path.iterdir()) == []
    assert not Journal(tmp_path).suspect(record(b"good", 1))


def test_a_bystander_of_two_deaths_is_not_poisoned(tmp_path: Path) -> None:
    culprit, bystander = record(b"culprit", 7), record(b"bystander", 8)
    first = Journal(tmp_path)
    first.begin(culprit)
    first.begin(bystander)
    second = Journal(tmp_path)  # suspects are handled alone: only the culprit is begun, and kills
    assert second.suspect(bystander)
    second.begin(culprit)
    third = Journal(tmp_path)
    assert third.begin(culprit) == 2
    assert third.begin(bystander) == 1


def test_a_death_after_it_was_handled_is_not_its_own(tmp_path: Path) -> None:
    event = record(b"good", 1)
    Journal(tmp_path).begin(event)
    second = Journal(tmp_path)
    second.begin(event)
    second.end(event)
    assert Journal(tmp_path).begin(event) == 0


def test_the_same_offset_of_another_log_is_another_event(tmp_path: Path) -> None:
    Journal(tmp_path).begin(record(b"of the old log", 7))
    assert not Journal(tmp_path).suspect(record(b"of the new log", 7))


def test_old_and_torn_marks_are_dropped(tmp_path: Path) -> None:
    Journal(tmp_path).begin(record(b"old", 1))
    for path in tmp_path.iterdir():
        long_ago = path.stat().st_mtime - KEEP_SECONDS - 1
        os.utime(path, (long_ago, long_ago))
    (tmp_path / "torn.json").write_text('{"topic": "ro')
    assert not Journal(tmp_path).suspect(record(b"old", 1))
    assert list(tmp_path.iterdir()) == []
