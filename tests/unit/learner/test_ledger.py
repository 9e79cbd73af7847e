from contextlib import closing
from pathlib import Path

import pytest

from learner.book.feed import Ended
from learner.book.incarnation import take_incarnation
from learner.book.ledger import LEDGER, ROLLED_BACK, Ledger, check_ledger, read_ledger, roll_back
from learner.errors import LedgerDamaged, Superseded
from tests.ledger_lines import ended


def test_lines_are_read_back_as_written(tmp_path: Path):
    incarnation = take_incarnation(tmp_path / "checkpoints")
    ledger = Ledger(tmp_path, tmp_path / "checkpoints", incarnation)
    ledger.append([ended(0), ended(1, outcome="stale")])
    ledger.append([])
    ledger.append([ended(2)])
    ledger.sync()
    ledger.close()
    assert read_ledger(tmp_path / LEDGER) == [ended(0), ended(1, outcome="stale"), ended(2)]


def test_a_learner_that_was_superseded_writes_nothing(tmp_path: Path):
    old = Ledger(tmp_path, tmp_path / "checkpoints", take_incarnation(tmp_path / "checkpoints"))
    take_incarnation(tmp_path / "checkpoints")
    with closing(old), pytest.raises(Superseded, match="incarnation 2"):
        old.append([ended(0)])
    assert read_ledger(tmp_path / LEDGER) == []


def test_a_resume_moves_the_lines_that_the_checkpoint_does_not_know(tmp_path: Path):
    alive = Ledger(tmp_path, tmp_path / "checkpoints", take_incarnation(tmp_path / "checkpoints"))
    alive.append([ended(0), ended(1), ended(2)])
    with (tmp_path / LEDGER).open("ab") as torn:
        torn.write(b'{"log_id": "a", "adm')
    assert roll_back(tmp_path, 1) == 3
    assert read_ledger(tmp_path / LEDGER) == [ended(0)]
    assert (tmp_path / ROLLED_BACK).read_bytes().count(b"\n") == 3
    alive.append([ended(3)])  # not yet superseded, but the ledger is another file now
    alive.close()
    assert read_ledger(tmp_path / LEDGER) == [ended(0)]


def test_a_ledger_shorter_than_the_checkpoint_says_is_damaged(tmp_path: Path):
    with pytest.raises(LedgerDamaged, match="lines were removed"):
        roll_back(tmp_path, 1)


def test_a_line_that_is_no_line_is_named(tmp_path: Path):
    (tmp_path / LEDGER).write_text('{"log_id": 3}\n')
    with pytest.raises(LedgerDamaged, match=":1:"):
        read_ledger(tmp_path / LEDGER)


def test_a_whole_ledger_passes():
    report = check_ledger([ended(1), ended(0, outcome="stale"), ended(0, log_id="b")], {"a": range(2), "b": [0]})
    assert report.ok
    assert (report.lines, report.void, report.unaccounted) == (3, 0, 0)


def test_missing_repeated_and_unknown_lines_are_found():
    report = check_ledger([ended(0), ended(2), ended(2, outcome="stale"), ended(7)], {"a": range(4)})
    assert not report.ok
    assert (report.missing, report.repeated, report.unknown) == ({"a": [1, 3]}, {"a": [2]}, {"a": [7]})
    assert report.unaccounted == 2


def test_of_a_log_that_is_gone_only_repetitions_show():
    assert check_ledger([ended(5)], {}).ok
    assert check_ledger([ended(5), ended(5, outcome="stale")], {}).repeated == {"a": [5]}


def test_a_line_of_a_lower_incarnation_after_a_higher_is_void():
    report = check_ledger(
        [ended(0), ended(1, incarnation=2), ended(2, incarnation=1), ended(2, incarnation=2)], {"a": range(3)}
    )
    assert report.ok
    assert report.void == 1


def test_a_group_trained_in_two_logs_is_found():
    again = Ended(
        log_id="b", admission_number=0, group_id="a-0", domain="sums", incarnation=1, version=2, outcome="trained"
    )
    assert check_ledger([ended(0), again], {}).trained_twice == ["a-0"]
