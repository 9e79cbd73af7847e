"""Third-party packages for Python programs: an environment of its own, of which a jail sees what its task names.

`headwater sandbox packages add …` builds it with pip. A jail has the named distributions and what they need, read-only,
and nothing else of it; with none named it has none.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path

from sandbox.errors import GraderFault, SandboxError
from sandbox.jail.launcher import cache_folder

OWN = ("math-verify",)
"""What this package itself asks for, and finds in the service's own environment as well."""
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)[^;]*(?:;(.*))?")


class PackagesError(SandboxError):
    """The environment cannot be built; `str()` says why."""


def folder() -> Path:
    """Where the environment is. PackagesError for a user without a home."""
    cache = cache_folder()
    if cache is None:
        raise PackagesError("packages need a cache: set XDG_CACHE_HOME")
    return cache / f"packages-{sys.implementation.cache_tag}"


def add(names: Sequence[str]) -> None:
    """Install packages, by the names and versions that pip knows. Takes as long as pip does. PackagesError."""
    target = folder()
    target.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(target), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PackagesError(f"pip: {done.stderr.strip()[-1000:]}")


def installed() -> dict[str, str]:
    """Return what is there: version by name."""
    try:
        found = distributions(path=[str(folder())])
    except PackagesError:
        return {}
    return {canonical(one.name): one.version for one in found}


def canonical(name: str) -> str:
    """Write a distribution's name as all spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(names: Iterable[str]) -> dict[str, str]:
    """Return every file and folder that these packages and what they need consist of: path by name.

    GraderFault for one that is not there, with what to do.
    """
    wanted = [canonical(_name(name)) for name in names]
    found: dict[str, str] = {}
    seen: set[str] = set()
    own = any(name in OWN for name in wanted)
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        distribution = _distribution(name, own=own)
        if distribution is None:
            if name in map(canonical, map(_name, names)):
                raise GraderFault(f"package {name} is not here: headwater sandbox packages add {name}")
            continue  # for another platform, or of an extra that is not installed
        found |= dict(_entries(distribution))
        wanted += [canonical(_name(one)) for one in distribution.requires or ()]
    return found


def modules(names: Iterable[str]) -> list[str]:
    """Return what the named packages themselves are imported as."""
    found: list[str] = []
    for name in names:
        distribution = _distribution(canonical(_name(name)), own=True)
        tops = [entry for entry, _ in _entries(distribution)] if distribution else []
        found += [top.removesuffix(".py") for top in tops if top.removesuffix(".py").isidentifier() and top[0] != "_"]
    return found


def _name(requirement: str) -> str:
    found = _REQUIREMENT.match(requirement)
    return found[1] if found else requirement


def _distribution(name: str, *, own: bool) -> Distribution | None:
    places: list[list[str]] = [[str(folder())]]
    if own:
        places.append(sys.path)
    for place in places:
        for one in distributions(name=name, path=place):
            return one
    return None


def _entries(distribution: Distribution) -> Iterator[tuple[str, str]]:
    """The top of each path that a distribution has written beside its metadata."""
    tops = {Path(str(file)).parts[0] for file in distribution.files or ()}
    for top in sorted(tops - {"..", "bin", "__pycache__"}):
        path = Path(str(distribution.locate_file(top)))
        if path.exists():
            yield top, str(path)
