"""A builder that was killed must not make the next learner wait for ever."""

import os
from pathlib import Path

import pytest

from learner.training.operator_build import DIRECTORY_VARIABLE, exclusive_build


def test_what_a_killed_builder_left_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    with exclusive_build():
        directory = Path(os.environ[DIRECTORY_VARIABLE])
    assert directory.is_relative_to(tmp_path / ".cache/headwater/torch-extensions")
    operator = directory / "some_operator"
    operator.mkdir()
    (operator / "lock").touch()
    (operator / "built.so").touch()
    with exclusive_build():
        assert os.environ[DIRECTORY_VARIABLE] == str(directory)
        assert [path.name for path in operator.iterdir()] == ["built.so"]
    assert DIRECTORY_VARIABLE not in os.environ


def test_each_environment_builds_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    with exclusive_build():
        first = os.environ[DIRECTORY_VARIABLE]
    monkeypatch.setattr("sys.prefix", "/another/.venv")
    with exclusive_build():
        assert os.environ[DIRECTORY_VARIABLE] != first


def test_a_directory_of_the_users_choice_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    (tmp_path / "lock").touch()
    with exclusive_build():
        assert (tmp_path / "lock").exists()
