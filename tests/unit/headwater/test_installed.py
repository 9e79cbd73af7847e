"""What somebody gets who installs it: names, types, and an import that finds ours wherever it is started."""

import inspect
import subprocess
import sys
import tomllib
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater.errors import StrangerImported
from headwater.run.processes import headwater_command
from headwater.strangers import PACKAGES

ROOT = Path(headwater.__file__).parents[1]
OURS = (*PACKAGES, "headwater")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(params=["schemas/__init__.py", "tasks.py"])
def stranger(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A module of somebody else's, in a folder in which headwater is used."""
    path = tmp_path / request.param
    path.parent.mkdir(exist_ok=True)
    path.write_text("raise SystemExit('a stranger was imported')\n")
    return path


def test_a_role_starts_beside_a_stranger(stranger: Path, tmp_path: Path) -> None:
    command = headwater_command("worker", "dispatch", "--run-directory", "run", "--bootstrap", "127.0.0.1:9")
    assert "no Kafka broker answers at 127.0.0.1:9" in run(tmp_path, *command).stderr


@pytest.mark.parametrize("code", [["-m", "headwater", "status"], ["-c", "from headwater import Client"]])
def test_a_stranger_is_named_in_one_sentence(stranger: Path, tmp_path: Path, code: list[str]) -> None:
    shown = run(tmp_path, sys.executable, *code)
    last = shown.stderr.strip().splitlines()[-1]
    assert shown.returncode == 1
    assert f"finds {stranger}, which is not Headwater's" in last
    assert "a stranger was imported" not in shown.stderr


def test_a_stranger_that_is_loaded_already_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = types.ModuleType("tasks")
    module.__file__ = str(tmp_path / "tasks.py")
    monkeypatch.setitem(sys.modules, "tasks", module)
    with pytest.raises(StrangerImported, match=r"`import tasks` finds .*tasks\.py"):
        _ = headwater.Client


def test_a_folder_of_that_name_without_python_in_it_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    assert run(tmp_path, sys.executable, "-c", "from headwater import Client").returncode == 0


def test_import_headwater_is_light() -> None:
    code = f"""
import sys, headwater
assert not {{name.partition(".")[0] for name in sys.modules}} & {set(PACKAGES)!r}
headwater.Client, headwater.HeadwaterError
assert not {{"torch", "faust", "transformers", "deepspeed"}} & set(sys.modules)
"""
    shown = run(ROOT, sys.executable, "-c", code)
    assert shown.returncode == 0, shown.stderr


def test_every_exported_name_is_there() -> None:
    assert [name for name in headwater.__all__ if getattr(headwater, name, None) is None] == []


def _ours(annotation: object) -> Iterator[str]:
    """The names of our own types in an annotation."""
    if isinstance(annotation, typing.TypeAliasType):
        yield annotation.__name__
        return
    for inner in typing.get_args(annotation):
        yield from _ours(inner)
    if isinstance(annotation, type) and annotation.__module__.partition(".")[0] in OURS:
        yield annotation.__name__


def test_what_the_clients_methods_take_return_and_raise_is_exported() -> None:
    methods = [
        value
        for name, value in vars(headwater.Client).items()
        if inspect.isfunction(value) and (name == "__init__" or not name.startswith("_"))
    ]
    assert len(methods) > 5
    names = {name for method in methods for hint in typing.get_type_hints(method).values() for name in _ours(hint)}
    told = {word.strip(".,:()") for method in methods for word in (method.__doc__ or "").split()}
    errors = {
        word for word in told if word[:1].isupper() and word.endswith(("Error", "Unreachable", "Answered", "Large"))
    }
    assert {"Prompt", "Reward", "Scored"} <= names
    assert {"NotAnswered", "SchemaError", "EventTooLarge"} <= errors
    assert (names | errors) - {*headwater.__all__} == set()


def test_every_package_of_the_wheel_is_typed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(packages) == sorted(OURS)
    assert [package for package in packages if not (ROOT / package / "py.typed").is_file()] == []
