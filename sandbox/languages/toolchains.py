"""Where the toolchains of this host are, and what must be prepared once before one can be used."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import GraderFault, TaskFault
from sandbox.languages import packages
from sandbox.languages.language import SYSTEM, Language
from sandbox.languages.languages import LANGUAGES
from sandbox.limits import RunLimits

_MAX_STACK_KB = 1 << 20
"""Java takes no more."""


@dataclass(frozen=True)
class Toolchain:
    """A language as this host has it."""

    language: Language
    tool: str = ""
    """Real path of its first tool."""
    home: str = ""
    """The folder that holds it all, where it is not simply in /usr."""
    prepared: str = ""
    project: bool = False
    """For projects: with a shell and the system's commands beside it."""
    packages: tuple[str, ...] = ()
    """Third-party packages that programs of this jail may import."""

    @property
    def name(self) -> str:
        """The language's."""
        return self.language.name

    @property
    def binds(self) -> tuple[str, ...]:
        """Everything of the host that its jails need, beside Python."""
        own = tuple(path for path in (self.home, self.prepared) if path and path != "/usr")
        return (*self.language.binds, *own, *(SYSTEM if self.project else ()))

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders of commands that a project's shell finds, beside the system's."""
        tool = self.tool or python_interpreter()
        return tuple(dict.fromkeys(str(Path(path).parent) for path in (tool, f"{self.home}/bin/-") if path[0] == "/"))

    def command(self, words: tuple[str, ...], limits: RunLimits, **more: str) -> tuple[str, ...]:
        """Fill a command of the language in; `more`: source, main, standard."""
        known = {
            "tool": self.tool,
            "home": self.home,
            "prepared": self.prepared,
            "heap_mb": str(max(16, limits.memory_bytes * 3 // 4 >> 20)),
            "stack_kb": str(min(_MAX_STACK_KB, limits.memory_bytes * 3 // 4 >> 10)),
            **more,
        }
        return tuple(word.format_map(known) if "{" in word else word for word in words)


def find(name: str) -> Language:
    """Look a language up, whether or not this host has it."""
    language = LANGUAGES.get(name)
    if language is None:
        raise GraderFault(f"no such language: {name!r} (there are {', '.join(sorted(LANGUAGES))})")
    return language


def missing_tool(language: Language) -> str | None:
    """Name the first tool that this host lacks."""
    return next((tool for tool in language.tools if shutil.which(tool) is None), None)


def python_interpreter() -> str:
    """The Python that runs in jails: the one that runs us, outside any virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def locate(name: str, *, project: bool = False, wanted: tuple[str, ...] = ()) -> Toolchain:
    """Find a language's toolchain; GraderFault with the package to install if it is not here.

    May run the toolchain (once a Judge): call it in a thread.
    """
    language = find(name)
    tool = missing_tool(language)
    if tool is not None:
        raise GraderFault(f"language {name}: {tool} is not installed here (Debian: apt install {language.package})")
    if wanted and language.run:
        raise TaskFault(f"packages are for Python, not for {name}")
    if not language.tools:
        packages.entries(wanted)  # or says which is missing
        return Toolchain(language, project=project, packages=wanted)
    path = os.path.realpath(str(shutil.which(language.tools[0])))
    home = language.home(path) if language.home else str(Path(path).parent.parent)
    return Toolchain(language, path, home, str(language.prepare(home)) if language.prepare else "", project)
