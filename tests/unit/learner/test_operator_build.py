"""A builder that was killed must not make the next learner wait for ever."""

import os
from pathlib import Path

import pytest

from learner.operator_build import DIRECTORY_VARIABLE, exclusive_build


def test_what_a_killed_builder_left_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    operator = tmp_path / ".cache/headwater/torch-extensions/some_operator"
    operator.mkdir(parents=True)
    (operator / "lock").touch()
    (operator / "built.so").touch()
    with exclusive_build():
        assert os.environ[DIRECTORY_VARIABLE] == str(operator.parent)
        assert [path.name for path in operator.iterdir()] == ["built.so"]
    assert DIRECTORY_VARIABLE not in os.environ


def test_a_directory_of_the_users_choice_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    (tmp_path / "lock").touch()
    with exclusive_build():
        assert (tmp_path / "lock").exists()
