"""What a language is: everything that the sandbox, and whoever reads answers, knows of it.

Commands may hold `{tool}` (the real path of the first of `tools`), `{home}` (the folder of a toolchain
that has one of its own), `{prepared}` (what `prepare` made) and `{heap_mb}` and `{stack_kb}` (three
quarters of the memory limit, for runtimes that must be told), and what fields of a language say.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.inside.protocol import WORK
from sandbox.limits import COMPILE, DEFAULT, MIB, RunLimits

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": WORK,
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
}

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
"""For numeric packages, which start as many threads as the host has cores, whatever a jail may use."""


@dataclass(frozen=True)
class Language:
    """How programs of one language are built and started. Paths are paths in the jail."""

    name: str
    source: str
    """File name of the program."""
    package: str
    """The Debian package that brings the toolchain."""
    fences: tuple[str, ...]
    """What stands after a fence around such a program, lower-case."""
    endings: tuple[str, ...]
    """Of files that hold such a program."""
    tools: tuple[str, ...] = ()
    """What must be on the host."""
    compile: tuple[str, ...] | None = None
    """Run once a program, in `/build` beside the source; None: nothing to compile (or to check)."""
    run: tuple[str, ...] = ()
    """Run once a test. Empty: Python, which is forked and not started."""
    binds: tuple[str, ...] = ()
    """Folders and files of the host that it needs to compile and run, read-only; absent ones are left out."""
    environment: dict[str, str] = field(default_factory=dict[str, str])
    standard: str = ""
    """Of the language, where its compiler knows several and the task names none; commands have it as `{standard}`."""
    entry: Callable[[bytes], tuple[str, str]] | None = None
    """From a program to (file name, what is started), where the program says; commands have them as `{source}`,
    `{main}`. None: `source`, and nothing."""
    home: Callable[[str], str] | None = None
    """From the real path of its first tool to the folder that holds it all; None: the one above that of the tool."""
    prepare: Callable[[str], Path] | None = None
    """What must be done once before it can be used, given its home: where `{prepared}` is."""
    limits: RunLimits = DEFAULT
    compile_limits: RunLimits = COMPILE


SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/etc/alternatives")
C_LIKE = (*SYSTEM, "/usr/include")
MANAGED = RunLimits(memory_bytes=1024 * MIB, processes=256)
"""For runtimes with threads and heaps of their own."""
