"""Unpacks a tree of files where programs are built. Runs as the judged user, like the build itself."""

# ruff: noqa: PTH103, PTH107, PTH112, PTH113, PTH114, PTH118, PTH123 - every jail would load pathlib for a handful of calls

import json
import os
import shutil

from . import programs
from .link import Json
from .protocol import BUILD


def run_unpack(descriptors: "list[int]", process: Json) -> None:
    """Write every file, in place of whatever stands at its path or at a folder above it."""
    tree = json.loads(programs.read_all(descriptors[0]))
    if tree["sweep"]:
        sweep(tree["sweep"], frozenset(tree["keep"]))
    for name in tree["hide"]:
        clear_way(name, frozenset(tree["files"]))
    for name, text in tree["files"].items():
        try:
            write(name, text)
        except (OSError, ValueError) as error:
            os.write(2, f"{name}: {error}".encode(errors="replace"))
            os._exit(1)
    programs.leave()


def write(name: str, text: str) -> None:
    """Write one file below BUILD."""
    path = os.path.join(BUILD, name)
    folder = BUILD
    for part in name.split("/")[:-1]:
        folder = os.path.join(folder, part)
        if os.path.islink(folder) or not os.path.isdir(folder):
            remove(folder)
            os.makedirs(folder)
    remove(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if text.startswith("#!"):
        os.chmod(path, 0o755)  # noqa: PTH101


def sweep(patterns: "list[str]", keep: "frozenset[str]") -> None:
    """Take away, anywhere, what has one of the names, or is below one, and is not one of the paths to keep."""
    import fnmatch

    for folder, folders, names in os.walk(BUILD):
        for name in [*folders, *names]:
            path = os.path.join(folder, name)
            place = os.path.relpath(path, BUILD)
            steers = any(fnmatch.fnmatchcase(part, one) for part in place.split("/") for one in patterns)
            if steers and place not in keep:
                remove(path)
        folders[:] = [name for name in folders if os.path.isdir(os.path.join(folder, name))]
        for name in folders:
            if not os.path.islink(os.path.join(folder, name)):
                os.chmod(os.path.join(folder, name), 0o755)  # noqa: PTH101 - a closed folder would not be looked into


def clear_way(name: str, files: "frozenset[str]") -> None:
    """Take away what Python would load in place of this file: a package of its name, compiled code."""
    folder, _, base = name.rpartition("/")
    stem, _, ending = base.rpartition(".")
    if ending != "py":
        return
    package = f"{folder}/{stem}" if folder else stem
    if not any(path.startswith(f"{package}/") for path in files):
        remove(os.path.join(BUILD, package))
    for place in (os.path.join(BUILD, folder), os.path.join(BUILD, folder, "__pycache__")):
        for found in os.listdir(place) if os.path.isdir(place) else ():  # noqa: PTH208
            if found.startswith(f"{stem}.") and found.endswith((".so", ".pyc")):
                remove(os.path.join(place, found))


def remove(path: str) -> None:
    """Take away what is there, if anything is."""
    if os.path.islink(path) or os.path.isfile(path):
        os.remove(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)
