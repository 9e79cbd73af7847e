"""What some toolchains need to be asked, or to have done, once before they can be used."""

import os
import shutil
import subprocess
from pathlib import Path

from sandbox.errors import GraderFault
from sandbox.jail.launcher import cache_folder

_PREPARE_SECONDS = 600


def rust_home(_: str) -> str:
    """Ask: `rustc` may be a shim that chooses among several."""
    return _output([str(shutil.which("rustc")), "--print", "sysroot"]).strip()


def go_packages(home: str) -> Path:
    """Compile Go's standard library once into the user's cache, and write where each package is.

    Go ships it as source since 1.20; compiled anew for every program it would cost half a minute each.
    """
    go = f"{home}/bin/go"
    version = _output([go, "env", "GOVERSION"]).strip()
    folder = cache_folder()
    if folder is None:
        raise GraderFault("Go needs a cache for its compiled standard library: set XDG_CACHE_HOME")
    cache = folder / f"go-{version}"
    table = cache / "importcfg"
    if not table.exists():
        cache.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "GOCACHE": str(cache / "packages"),
            "CGO_ENABLED": "0",
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "",
        }
        form = "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}"
        listed = _output([go, "list", "-export", "-f", form, "std"], environment)
        partial = cache / f"importcfg.{os.getpid()}"
        partial.write_text("\n".join(line for line in listed.splitlines() if line) + "\n")
        partial.rename(table)
    return cache


def _output(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=_PREPARE_SECONDS, cwd="/"
    )
    if done.returncode != 0:
        raise GraderFault(f"{' '.join(command[:3])} fails: {done.stderr.strip()[-500:]}")
    return done.stdout
