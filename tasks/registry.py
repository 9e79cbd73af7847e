"""Domains by name: those of this package, and what other packages bring as entry points of `headwater.domains`."""

import difflib
from importlib.metadata import EntryPoint, entry_points

from tasks.domain import Domain
from tasks.errors import UnknownDomain

GROUP = "headwater.domains"
_OWN = {
    "functions": "tasks.domains.functions:FUNCTIONS",
    "held-out": "tasks.domains.functions:HELD_OUT",
    "new-templates": "tasks.domains.functions:NEW_TEMPLATES",
    "humaneval": "tasks.domains.humaneval:HUMANEVAL",
}
"""Name → module:object. A module is imported when its domain is asked for."""


def domain_names() -> list[str]:
    """Every name that `find_domain` takes."""
    return sorted(_OWN.keys() | {entry.name for entry in entry_points(group=GROUP)})


def find_domain(name: str) -> Domain:
    """The domain of that name. Raises UnknownDomain, also for a name that two packages claim."""
    entries = {entry.value: entry for entry in entry_points(group=GROUP) if entry.name == name}
    if name in _OWN:
        entries[_OWN[name]] = EntryPoint(name, _OWN[name], GROUP)
    if not entries:
        known = domain_names()
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        raise UnknownDomain(f"no domain is named {name!r}; {hint}")
    if len(entries) > 1:
        raise UnknownDomain(f"two packages bring a domain {name!r}: {', '.join(sorted(entries))}; uninstall one")
    (entry,) = entries.values()
    try:
        domain = entry.load()
    except (ImportError, AttributeError) as error:
        raise UnknownDomain(f"the domain {name!r} cannot be loaded from {entry.value}: {error}") from error
    if not isinstance(domain, Domain) or domain.name != name:
        raise UnknownDomain(f"{entry.value}, entered as the domain {name!r}, is no `tasks.domain.Domain` of that name")
    return domain
