import errno
import shutil
from pathlib import Path

import pytest

from learner.durable import new_directory, remove_directory, remove_leftovers


def test_a_directory_appears_when_all_of_it_is_written(tmp_path: Path):
    with new_directory(tmp_path / "made") as scratch:
        (scratch / "file").write_text("x")
        assert not (tmp_path / "made").exists()
    assert (tmp_path / "made" / "file").read_text() == "x"


def test_a_crash_leaves_no_directory_and_its_rest_is_cleared(tmp_path: Path):
    def crash() -> None:
        with new_directory(tmp_path / "made") as scratch:
            (scratch / "file").write_text("x")
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        crash()
    assert not (tmp_path / "made").exists()
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_removed_directory_is_gone(tmp_path: Path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").write_text("x")
    remove_directory(tmp_path / "old")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_what_went_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=4096))  # pyright: ignore
    with pytest.raises(OSError, match=r"No space left on device.*made") as full, new_directory(tmp_path / "made"):
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534")
    assert full.value.errno == errno.ENOSPC
