"""A directory that every machine of a run reaches: at any URL that fsspec knows (`s3://`, `file://`, …).

Credentials and endpoints are each machine's own, where its library looks for them (`AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, …). An object store has no renaming: what consists of several files is whole when its `last` is
there.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wire.errors import StorageFailed
from wire.uris import file_system, has_directories, make_directory, unanswered, uri_of


class Storage:
    """One directory there. All of it blocks; every method raises StorageFailed."""

    def __init__(self, place: str | Path) -> None:
        self.uri = uri_of(place).rstrip("/")

    def below(self, name: str) -> "Storage":
        return Storage(f"{self.uri}/{name}")

    @property
    def local(self) -> Path | None:
        """Where it is, if it is a directory of this machine's own file system."""
        return Path(file_system(self.uri)[1]) if self.uri.startswith("file://") else None

    def names(self) -> list[str]:
        """What is in it now, sorted; empty when there is no such directory."""
        with self._open() as (files, root):
            try:
                return sorted(path.rstrip("/").rpartition("/")[2] for path in files.ls(root, detail=False))
            except FileNotFoundError:
                return []

    def has(self, name: str) -> bool:
        with self._open() as (files, root):
            return bool(files.exists(f"{root}/{name}"))

    def read(self, name: str) -> bytes:
        with self._open() as (files, root):
            data: bytes = files.cat_file(f"{root}/{name}")
            return data

    def take(self, name: str) -> bool:
        """Make an empty file; False when it was there. Of many that try at once one does it (O_EXCL, If-None-Match)."""
        with self._open() as (files, root):
            path = f"{root}/{name}"
            if files.exists(path):
                return False
            make_directory(files, root)
            try:
                files.pipe_file(path, b"", mode="create")
            except OSError:
                if files.exists(path):
                    return False
                raise
        return True

    def put(self, directory: Path, *, last: str = "") -> None:
        """Copy all files of a directory here, `last` after all others."""
        names = [path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()]
        with self._open() as (files, root):
            for name in sorted(names, key=lambda name: name == last):
                target = f"{root}/{name}"
                make_directory(files, target.rpartition("/")[0])
                files.put_file(str(directory / name), target)

    def get(self, target: Path) -> None:
        """Copy all files from here into a directory."""
        with self._open() as (files, root):
            for path in files.find(root):
                local = target / path[len(root) :].lstrip("/")
                local.parent.mkdir(parents=True, exist_ok=True)
                files.get_file(path, str(local))

    def remove(self, *, first: str = "") -> None:
        """Delete it with all that is in it, `first` before all others: never half of it looks whole."""
        with self._open() as (files, root):
            if first and files.exists(f"{root}/{first}"):
                files.rm_file(f"{root}/{first}")
            if has_directories(files) and files.exists(root):
                files.rm(root, recursive=True)
            elif found := files.find(root):
                files.rm(found)  # recursive would ask for the name of the directory too, which some servers refuse

    @contextmanager
    def _open(self) -> Generator[tuple[Any, str]]:
        try:
            yield file_system(self.uri)
        except (OSError, ImportError, ValueError, *unanswered()) as error:
            install = "; `pip install 'headwater[s3]'`" if isinstance(error, ImportError) and "s3" in str(error) else ""
            raise StorageFailed(
                f"the storage {self.uri} cannot be used here ({type(error).__name__}: {error}{install}). Credentials "
                "and endpoint come from the environment of this process (for S3: AWS_ACCESS_KEY_ID, "
                "AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL)"
            ) from error
