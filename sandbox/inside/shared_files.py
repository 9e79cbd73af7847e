"""In the tester: temporary files and folders that the answer, another user, may read and write as well."""

# ruff: noqa: PTH101, PTH102 - every jail would load pathlib for a handful of calls

import os
import tempfile
from typing import Any

FOLDER = "/tmp/shared"


def install() -> None:
    """Make temporary files where both may write, and open to both."""
    os.umask(0)
    os.mkdir(FOLDER)
    tempfile.tempdir = FOLDER
    make, create = os.mkdir, os.open

    def mkdir(path: Any, mode: int = 0o777, *, dir_fd: "int | None" = None) -> None:
        make(path, mode, dir_fd=dir_fd)
        if dir_fd is None and _is_shared(path):
            os.chmod(path, 0o777)

    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: "int | None" = None) -> int:
        file = create(path, flags, mode, dir_fd=dir_fd)
        if flags & os.O_CREAT and dir_fd is None and _is_shared(path):
            os.fchmod(file, 0o666)
        return file

    os.mkdir, os.open = mkdir, opened


def _is_shared(path: Any) -> bool:
    return os.path.abspath(os.fsdecode(path)).startswith(f"{FOLDER}/")  # noqa: PTH100
