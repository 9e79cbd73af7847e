"""Unpacks a tree of files where programs are built. Runs as the judged user, like the build itself."""

# ruff: noqa: PTH103, PTH107, PTH112, PTH113, PTH114, PTH118, PTH123 - every jail would load pathlib for a handful of calls

import json
import os
import shutil

import programs
from link import Json

ROOT = "/build"


def run_unpack(descriptors: "list[int]", process: Json) -> None:
    """Write every file, in place of whatever stands at its path or at a folder above it."""
    for name, text in json.loads(programs.read_all(descriptors[0])).items():
        path = os.path.join(ROOT, name)
        folder = ROOT
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
    programs.leave()


def remove(path: str) -> None:
    """Take away what is there, if anything is."""
    if os.path.islink(path) or os.path.isfile(path):
        os.remove(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)
