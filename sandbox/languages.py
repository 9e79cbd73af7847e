"""The languages, one declarative description each. A new language is one more entry of LANGUAGES."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.errors import GraderFault
from sandbox.limits import COMPILE, DEFAULT, RunLimits

BUILD = "/build"
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp/work",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
}


@dataclass(frozen=True)
class Language:
    """How programs of one language are built and started. Paths are paths in the jail."""

    name: str
    source: str
    """File name of the program."""
    package: str
    """The Debian package that brings the toolchain."""
    tools: tuple[str, ...] = ()
    """What must be on the host."""
    compile: tuple[str, ...] | None = None
    """Run once a program, in `/build` beside the source; None: nothing to compile (or to check)."""
    run: tuple[str, ...] = ()
    """Run once a test. Empty: Python, which is forked and not started."""
    binds: tuple[str, ...] = ()
    """Folders and files of the host that it needs to compile and run, read-only; absent ones are left out."""
    home: Callable[[str], Path] | None = None
    """From the first tool's real path to a folder that must be there as well (a toolchain with a home of its own)."""
    environment: dict[str, str] = field(default_factory=dict[str, str])
    limits: RunLimits = DEFAULT
    compile_limits: RunLimits = COMPILE


_SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec")
_C_LIKE = (*_SYSTEM, "/usr/include")

LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        Language(name="python", source="solution.py", package="python3"),
        Language(
            name="c",
            source="main.c",
            package="gcc",
            tools=("gcc",),
            compile=("/usr/bin/gcc", "-std=c17", "-O2", "-pthread", "-o", "program", "main.c", "-lm"),
            run=(f"{BUILD}/program",),
            binds=_C_LIKE,
        ),
        Language(
            name="cpp",
            source="main.cpp",
            package="g++",
            tools=("g++",),
            compile=("/usr/bin/g++", "-std=c++17", "-O2", "-pthread", "-o", "program", "main.cpp"),
            run=(f"{BUILD}/program",),
            binds=_C_LIKE,
        ),
        Language(
            name="bash",
            source="main.sh",
            package="bash",
            tools=("bash",),
            compile=("/usr/bin/bash", "-n", "main.sh"),
            run=("/usr/bin/bash", "--noprofile", "--norc", f"{BUILD}/main.sh"),
            binds=_SYSTEM,
        ),
    )
}


def find(name: str) -> Language:
    """Look a language up, whether or not this host has it."""
    language = LANGUAGES.get(name)
    if language is None:
        raise GraderFault(f"no such language: {name!r} (there are {', '.join(sorted(LANGUAGES))})")
    return language


def missing_tool(language: Language) -> str | None:
    """Name the first tool that this host lacks."""
    return next((tool for tool in language.tools if shutil.which(tool) is None), None)


def require(name: str) -> Language:
    """Look a language up and see that this host can run it."""
    language = find(name)
    tool = missing_tool(language)
    if tool is not None:
        raise GraderFault(f"language {name}: {tool} is not installed here (Debian: apt install {language.package})")
    return language
