"""A tiny model on the disk, once for all tests here."""

from pathlib import Path

import pytest

from tests.learner_support import tiny_model


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny-llama")
