"""Where the toolchains of this host are, and what must be prepared once before one can be used."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import GraderFault
from sandbox.jail.launcher import cache_folder
from sandbox.languages.languages import LANGUAGES, SYSTEM, Language
from sandbox.limits import RunLimits

_PREPARE_SECONDS = 600


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

    def command(self, words: tuple[str, ...], limits: RunLimits) -> tuple[str, ...]:
        """Fill a command of the language in."""
        known = {
            "tool": self.tool,
            "home": self.home,
            "prepared": self.prepared,
            "heap_mb": str(max(16, limits.memory_bytes * 3 // 4 >> 20)),
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


def locate(name: str, *, project: bool = False) -> Toolchain:
    """Find a language's toolchain; GraderFault with the package to install if it is not here.

    May run the toolchain (once a Judge): call it in a thread.
    """
    language = find(name)
    tool = missing_tool(language)
    if tool is not None:
        raise GraderFault(f"language {name}: {tool} is not installed here (Debian: apt install {language.package})")
    if not language.tools:
        return Toolchain(language, project=project)
    path = os.path.realpath(str(shutil.which(language.tools[0])))
    home = _HOMES.get(name, _parent)(path)
    prepare = _PREPARED.get(name)
    return Toolchain(language, path, home, str(prepare(home)) if prepare else "", project)


def _parent(tool: str) -> str:
    """The folder above `bin`."""
    return str(Path(tool).parent.parent)


def _rust_home(_: str) -> str:
    """Ask: `rustc` may be a shim that chooses among several."""
    return _output([str(shutil.which("rustc")), "--print", "sysroot"]).strip()


def _go_packages(home: str) -> Path:
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


_HOMES: dict[str, Callable[[str], str]] = {"rust": _rust_home}
_PREPARED: dict[str, Callable[[str], Path]] = {"go": _go_packages}
