"""The model to start from, as a directory on this machine. The work is done in a process of its own: it loads torch."""

import os
import subprocess
from pathlib import Path

from headwater.errors import ModelError
from headwater.run.processes import output_of
from wire.broker.jars import user_cache


def cache_directory() -> Path:
    """Where converted models are kept: HEADWATER_CACHE, else the user's cache directory."""
    given = os.environ.get("HEADWATER_CACHE")
    return Path(given) if given else user_cache()


def check_model(name: str) -> None:
    """Raise ModelError where it is clear at once, without a network, that there is no such model."""
    from learner.base_model import BaseModelError, check_base_model

    try:
        check_base_model(name)
    except BaseModelError as error:
        raise ModelError(str(error)) from error


async def model_directory(name: str) -> Path:
    """The Hugging Face directory of a model name, path or hub id; converted or fetched if need be.

    Raises ModelError, which says what to do.
    """
    try:
        printed = await output_of("learner.base_model", name, str(cache_directory()))
    except subprocess.CalledProcessError as error:
        raise ModelError(error.stderr.removeprefix("error: ")) from error
    return Path(printed.strip().splitlines()[-1])
