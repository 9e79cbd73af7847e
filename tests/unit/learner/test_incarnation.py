from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from learner.book.incarnation import check_newest, newest_incarnation, take_incarnation
from learner.errors import Superseded


def test_the_first_is_one_and_they_rise(tmp_path: Path):
    directory = tmp_path / "checkpoints"
    assert newest_incarnation(directory) == 0
    assert [take_incarnation(directory) for _ in range(3)] == [1, 2, 3]
    assert newest_incarnation(directory) == 3


def test_what_the_stream_has_seen_is_not_taken_again(tmp_path: Path):
    assert take_incarnation(tmp_path, above=7) == 8


def test_of_many_that_start_at_once_each_gets_its_own(tmp_path: Path):
    with ThreadPoolExecutor(16) as threads:
        taken = list(threads.map(lambda _: take_incarnation(tmp_path), range(64)))
    assert sorted(taken) == list(range(1, 65))


def test_the_older_learner_stops(tmp_path: Path):
    first = take_incarnation(tmp_path)
    check_newest(tmp_path, first)
    second = take_incarnation(tmp_path)
    with pytest.raises(Superseded, match="incarnation 1 and has stopped: incarnation 2"):
        check_newest(tmp_path, first)
    check_newest(tmp_path, second)
