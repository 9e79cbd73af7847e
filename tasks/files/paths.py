"""Which files a path names: itself, a folder's, a glob's, or those of a folder that `datasets` saved."""

import glob
import json
import re
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import fsspec

from tasks.errors import UnreadableData

KINDS = (".jsonl", ".ndjson", ".json", ".parquet", ".arrow")
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
_ABOUT = ("dataset_info.json", "dataset_infos.json", "state.json", "config.json")
"""What stands beside data and is none."""
_SPLIT = re.compile(r"(?<![a-z])(train|test|validation|valid|val|dev|eval)(?![a-z])")


def files_of(path: str) -> list[str]:
    """The files, sorted by name, or in the order of `datasets`. Raises UnreadableData where there is none."""
    if "://" in path:
        return _of_url(path)
    local = Path(path).expanduser()
    if local.is_dir():
        return _of_saved(local) if (local / "state.json").is_file() else _of_folder(local)
    if local.exists() or not glob.has_magic(path):
        return [path]
    base = next(parent for parent in local.parents if parent.is_dir())  # whatever characters its name has
    names = glob.glob(str(local.relative_to(base)), root_dir=base, recursive=True)  # noqa: PTH207 - Path.glob finds `._x.jsonl` too
    return _some(path, [str(base / name) for name in names if (base / name).is_file()])


def suffix(file: str) -> str:
    """What the name says that the file is, without its compression."""
    path = PurePosixPath(urlsplit(file).path if "://" in file else file)
    return (PurePosixPath(path.stem) if path.suffix in _COMPRESSED else path).suffix


def _of_url(url: str) -> list[str]:
    """A URL names a file, or files with `*`, or a folder where it ends in `/`."""
    if "*" not in url and not url.endswith("/"):
        return [url]
    try:
        system, root = fsspec.url_to_fs(url)
        names = system.glob(root) if "*" in url else system.ls(root, detail=False)
        found = [system.unstrip_protocol(name) for name in names]
    except (OSError, ValueError, ImportError) as error:
        raise UnreadableData(f"{url}: cannot be read: {error}") from error
    return _some(url, found if "*" in url else _data(url, found))


def _of_folder(folder: Path) -> list[str]:
    if (folder / "dataset_dict.json").is_file():
        splits = _json(folder / "dataset_dict.json").get("splits", [])
        raise UnreadableData(f"{folder} has the splits {', '.join(splits)}: give one of them, {folder}/{splits[0]}")
    inside = list(folder.iterdir())
    found = _data(str(folder), [str(path) for path in inside if path.is_file()])
    if not found:
        folders = sorted(path.name for path in inside if path.is_dir())
        of_folders = f"; its folders: {', '.join(folders)}" if folders else ""
        raise UnreadableData(f"{folder}: no file of {', '.join(KINDS)} in it{of_folders}")
    return sorted(found)


def _data(folder: str, files: list[str]) -> list[str]:
    """Those that hold rows. Raises UnreadableData where they are of several splits: to test is not to train."""
    names = {file: PurePosixPath(file).name for file in files}
    found = [
        file for file, name in names.items() if suffix(name) in KINDS and name[0] not in "._" and name not in _ABOUT
    ]
    splits = sorted({match[1] for file in found if (match := _SPLIT.search(names[file]))})
    if len(splits) > 1:
        raise UnreadableData(
            f"{folder} has files of {' and '.join(splits)}: give one, {folder.rstrip('/')}/*{splits[-1]}*"
        )
    return found


def _of_saved(folder: Path) -> list[str]:
    """What `save_to_disk` of Hugging Face's `datasets` wrote; `cache-*.arrow` beside it is none of it."""
    state = _json(folder / "state.json")
    if state.get("_indices_data_files"):
        raise UnreadableData(f"{folder} is a selection of rows: save it again after `flatten_indices()`")
    try:
        return _some(str(folder), [str(folder / file["filename"]) for file in state["_data_files"]], ordered=True)
    except (KeyError, TypeError) as error:
        raise UnreadableData(f"{folder}/state.json is none of Hugging Face's `datasets`") from error


def _json(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        raise UnreadableData(f"{file}: no JSON: {error}") from error


def _some(path: str, files: list[str], *, ordered: bool = False) -> list[str]:
    if not files:
        raise UnreadableData(f"{path}: no file is named so")
    return files if ordered else sorted(files)
