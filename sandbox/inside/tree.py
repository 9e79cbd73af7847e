"""Unpacks a tree of files where programs are built. Runs as the judged user, like the build itself."""

# ruff: noqa: PTH103, PTH107, PTH112, PTH113, PTH114, PTH118, PTH123 - every jail would load pathlib for a handful of calls

import json
import os
import shutil
import struct
from typing import Any

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


_COUNT = struct.Struct(">I")


def run_pack(descriptors: "list[int]", process: Json) -> None:
    """Write what was built to the result pipe: the length of a table, the table, the files' bytes."""
    table: list[list[Any]] = []
    bodies: list[bytes] = []
    for folder, _, names in os.walk(ROOT):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    bodies.append(file.read())
                table.append([os.path.relpath(path, ROOT), len(bodies[-1]), os.stat(path).st_mode & 0o777])  # noqa: PTH116
    text = json.dumps(table).encode()
    with os.fdopen(descriptors[0], "wb") as out:
        out.write(b"".join((_COUNT.pack(len(text)), text, *bodies)))
    programs.leave()


def run_unpack_built(descriptors: "list[int]", process: Json) -> None:
    """Put back what `run_pack` wrote."""
    data = programs.read_all(descriptors[0])
    (size,) = _COUNT.unpack_from(data)
    position = _COUNT.size + size
    for name, length, mode in json.loads(data[_COUNT.size : position]):
        path = os.path.join(ROOT, name)
        os.makedirs(path.rpartition("/")[0], exist_ok=True)
        with open(path, "wb") as file:
            file.write(data[position : position + length])
        os.chmod(path, mode)  # noqa: PTH101
        position += length
    programs.leave()
