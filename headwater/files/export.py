"""A run's newest weights as a Hugging Face directory of the user's own."""

import hashlib
import re
import shutil
from pathlib import Path

from headwater.errors import HeadwaterError, RunDirectoryError
from headwater.files.run_directory import RunDirectory
from schemas import PolicyVersion

_NAME = re.compile(r"(\d+)\.(\d+)")


def newest_weights(directory: RunDirectory) -> tuple[PolicyVersion, Path]:
    """The newest snapshot of the highest incarnation. Raises RunDirectoryError when there is none."""
    named = [(_NAME.fullmatch(path.name), path) for path in directory.weights.glob("*")]
    versions = sorted((PolicyVersion(int(match[1]), int(match[2])), path) for match, path in named if match)
    if not versions:
        raise RunDirectoryError(f"{directory.path} has no weights yet: the learner publishes them when it starts")
    return versions[-1]


def export_model(directory: RunDirectory, target: Path) -> PolicyVersion:
    """Copy the newest snapshot to `target`, which must not exist; each file is read back and compared.

    Raises RunDirectoryError and HeadwaterError.
    """
    version, source = newest_weights(directory)
    if target.exists():
        raise HeadwaterError(f"{target} is there already: name a directory that is not")
    scratch = target.with_name(f".{target.name}.writing")
    try:
        shutil.copytree(source, scratch)
        for path in sorted(source.iterdir()):
            if _digest(path) != _digest(scratch / path.name):
                raise HeadwaterError(f"{path.name} was not copied faithfully to {target}: try again on another disk")
        scratch.rename(target)
    except OSError as error:
        raise HeadwaterError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return version


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
