"""What compiling made, kept on disk by the digest of everything that went in. Bounded; the oldest goes first.

An entry is one opaque file: it is never opened as anything else outside a jail, and only the very same
program gets it back. Its own digest stands before it, so a damaged entry is a missing one.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from sandbox.languages.toolchains import Toolchain

MAX_ENTRY_BYTES = 16 << 20
MAX_TOTAL_BYTES = 1 << 30
_DIGEST_BYTES = 32


class CompileCache:
    """One folder of entries; several services may share it."""

    def __init__(self, folder: Path, max_total_bytes: int = MAX_TOTAL_BYTES) -> None:
        self.folder = folder
        self.max_total_bytes = max_total_bytes
        self._written_bytes = max_total_bytes
        """Since the folder was last measured; at the bound at first, so that the first write measures."""

    def key(self, toolchain: Toolchain, command: tuple[str, ...], program: bytes) -> str:
        """Name an entry: the program, the command, and the compiler as it is now."""
        parts = [toolchain.name, *command]
        with contextlib.suppress(OSError):
            stat = Path(toolchain.tool).stat()
            parts += [toolchain.tool, str(stat.st_size), str(stat.st_mtime_ns)]
        return hashlib.sha256("\0".join(parts).encode() + b"\0" + program).hexdigest()

    def get(self, key: str) -> bytes | None:
        """Return an entry and mark it as used."""
        path = self.folder / key
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        return body if hashlib.sha256(body).digest() == digest else None

    def put(self, key: str, body: bytes) -> None:
        """Keep an entry; a folder that cannot be written to keeps nothing."""
        if len(body) > MAX_ENTRY_BYTES:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            partial = self.folder / f".{key}.{os.getpid()}"
            partial.write_bytes(hashlib.sha256(body).digest() + body)
            partial.rename(self.folder / key)
            self._written_bytes += len(body)
            if self._written_bytes > self.max_total_bytes // 10:
                self._trim()

    def _trim(self) -> None:
        found = sorted((path.stat().st_mtime_ns, path.stat().st_size, path) for path in self.folder.iterdir())
        total = sum(size for _, size, _ in found)
        for _, size, path in found:
            if total <= self.max_total_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size
        self._written_bytes = 0
