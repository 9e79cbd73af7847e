"""Packs what a compiler built, for the compile cache, and puts it back. Runs as the judged user, like the compiler.

Loads next to nothing: it runs in the jails of compiled languages, once a job.
"""

# ruff: noqa: PTH101, PTH103, PTH113, PTH114, PTH116, PTH118, PTH123 - loading pathlib would cost more than all the rest

import json
import os
import struct
from typing import Any

from .protocol import BUILD

_COUNT = struct.Struct(">I")


def run_pack(descriptors: "list[int]", process: object) -> None:
    """Write what was built to the result pipe: the length of a table, the table, the files' bytes."""
    table: list[list[Any]] = []
    bodies: list[bytes] = []
    for folder, _, names in os.walk(BUILD):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    bodies.append(file.read())
                table.append([os.path.relpath(path, BUILD), len(bodies[-1]), os.stat(path).st_mode & 0o777])
    text = json.dumps(table).encode()
    with os.fdopen(descriptors[0], "wb") as out:
        out.write(b"".join((_COUNT.pack(len(text)), text, *bodies)))
    os._exit(0)


def run_unpack_built(descriptors: "list[int]", process: object) -> None:
    """Put back what `run_pack` wrote."""
    data = os.pread(descriptors[0], os.fstat(descriptors[0]).st_size, 0)
    (size,) = _COUNT.unpack_from(data)
    position = _COUNT.size + size
    for name, length, mode in json.loads(data[_COUNT.size : position]):
        path = os.path.join(BUILD, name)
        os.makedirs(path.rpartition("/")[0], exist_ok=True)
        with open(path, "wb") as file:
            file.write(data[position : position + length])
        os.chmod(path, mode)
        position += length
    os._exit(0)
