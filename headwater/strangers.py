"""Our packages are top-level modules: what is called `schemas` or `tasks` and lies nearer on the path hides ours."""

import sys
from importlib.util import find_spec
from pathlib import Path

from headwater.errors import StrangerImported

PACKAGES = ("schemas", "wire", "sandbox", "tasks", "streams", "learner")


def refuse_strangers() -> None:
    """Raises StrangerImported where one of our packages would be, or has been, imported from elsewhere."""
    ours = Path(__file__).resolve().parents[1]
    for name in PACKAGES:
        found = _place_of(name)
        if found is not None and found.resolve() != ours / name / "__init__.py":
            raise StrangerImported(
                f"`import {name}` finds {found}, which is not Headwater's (that is in {ours / name}): start from "
                "another folder, rename it, or take its folder off PYTHONPATH"
            )


def _place_of(name: str) -> Path | None:
    """The file that an import of this name has run, or would run; None: there is none."""
    loaded = sys.modules.get(name)
    origin = getattr(loaded, "__file__", None) if loaded is not None else None
    if origin is None:
        spec = find_spec(name)
        origin = spec.origin if spec is not None else None
    return Path(origin) if origin is not None else None
