"""What a forked interpreter can be, by the kind of process: a function of a module here, loaded when it is wanted.

The jails of Python answers load all before the first fork; those of other languages fork seldom, and
loading everything would cost such a fork more than its work.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from . import protocol


def runner(kind: str) -> "Callable[[list[int], dict[str, Any]], None]":
    """Return the function that a process of this kind runs; KeyError if there is none."""
    module, _, name = protocol.RUNNERS[kind].partition(".")
    return getattr(import_module(f".{module}", __package__), name)


def load_all() -> None:
    """Load the modules of every kind."""
    for kind in protocol.RUNNERS:
        runner(kind)
