"""An event that kills its worker is known at the third start."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.unit.wire.doubles import marks_in, record
from wire.hop.inflight import DEATHS_TO_POISON, FILE_NAME, KEEP_SECONDS, SLOT_BYTES, Journal


def test_an_event_found_at_the_third_start_in_a_row_is_poisoned(tmp_path: Path) -> None:
    culprit = record(b"culprit", 7)
    assert Journal(tmp_path).begin(culprit) == 0  # the first start: dies over it
    second = Journal(tmp_path)
    assert second.suspect(culprit)
    assert second.begin(culprit) == 1  # dies again
    assert Journal(tmp_path).begin(culprit) == DEATHS_TO_POISON


def test_a_mark_outlives_the_process_that_is_killed_over_it(tmp_path: Path) -> None:
    event = record(b"culprit", 7)
    child = os.fork()
    if child == 0:
        Journal(tmp_path).begin(event)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert Journal(tmp_path).begin(event) == 1


def test_one_that_was_handled_leaves_no_mark(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.begin(record(b"good", 1))
    journal.end(record(b"good", 1))
    assert marks_in(tmp_path) == 0
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


def test_an_old_mark_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = record(b"old", 1)
    Journal(tmp_path).begin(event)
    later = time.time() + KEEP_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert not Journal(tmp_path).suspect(event)


def test_what_is_no_mark_is_dropped(tmp_path: Path) -> None:
    torn = b'{"topic": "ro'
    (tmp_path / FILE_NAME).write_bytes((len(torn).to_bytes(2, "little") + torn).ljust(SLOT_BYTES, b"\0"))
    event = record(b"event", 1)
    assert Journal(tmp_path).begin(event) == 0
    assert Journal(tmp_path).suspect(event)


def test_more_events_than_slots(tmp_path: Path) -> None:
    events = [record(str(offset).encode(), offset) for offset in range(500)]
    first = Journal(tmp_path)
    for event in events:
        first.begin(event)
    for event in events[:250]:
        first.end(event)
    second = Journal(tmp_path)
    assert [second.suspect(event) for event in events] == [False] * 250 + [True] * 250


def test_a_mark_left_twice_counts_as_the_worse(tmp_path: Path) -> None:
    """A death between the writing of a new mark and the clearing of the old."""
    event = record(b"culprit", 7)
    Journal(tmp_path).begin(event)
    file = tmp_path / FILE_NAME
    before = file.read_bytes()
    used = next(start for start in range(0, len(before), SLOT_BYTES) if before[start])
    Journal(tmp_path)  # one death, in another slot
    slots = bytearray(file.read_bytes())
    slots[used : used + SLOT_BYTES] = before[used : used + SLOT_BYTES]
    file.write_bytes(slots)
    again = Journal(tmp_path)
    assert again.begin(event) == 1
    again.end(event)
    assert not Journal(tmp_path).suspect(event)
