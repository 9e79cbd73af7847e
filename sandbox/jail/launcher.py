"""The small native program that starts compiled answers cheaply; built once into the user's cache.

Without a C compiler there is none, and the jail's init forks itself instead: the same steps, some
milliseconds of CPU more a test.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "inside" / "launch.c"


def cache_folder() -> Path | None:
    """Where this package keeps what it builds once; None for a user without a home."""
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(named) if named else Path.home() / ".cache") / "headwater"
    except RuntimeError:
        return None


def built() -> Path | None:
    """Return the launcher, built now if it has not been; None where it cannot be."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    folder = cache_folder()
    if compiler is None or folder is None:
        return None
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"launch-{digest}"
        if not target.exists():
            partial = folder / f"launch-{digest}.{os.getpid()}"
            for linking in (["-static"], []):
                command = [compiler, "-O2", "-s", *linking, "-o", str(partial), str(SOURCE)]
                if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                    partial.rename(target)
                    break
            else:
                return None
    except OSError:  # no cache to write to
        return None
    return target
