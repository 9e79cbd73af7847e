"""The model to start from, as a directory on this machine. The work is done in a process of its own: it loads torch."""

import asyncio
import os
import sys
from pathlib import Path

from headwater.errors import ModelError
from headwater.run.processes import dies_with_parent


def cache_directory() -> Path:
    """Where converted models are kept: HEADWATER_CACHE, else the user's cache directory."""
    given = os.environ.get("HEADWATER_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater"


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
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "learner.base_model",
        name,
        str(cache_directory()),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        preexec_fn=dies_with_parent(),
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        lines = errors.decode(errors="replace").strip().splitlines() or ["no reason was given"]
        raise ModelError(lines[-1].removeprefix("error: "))
    return Path(output.decode().strip().splitlines()[-1])
