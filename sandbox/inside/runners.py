"""What a forked interpreter can be, by the kind of process: a function of a module here, loaded when it is wanted.

The jails of Python answers load all before the first fork; those of other languages fork seldom, and
loading everything would cost such a fork more than its work.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_RUNNERS = {
    "main": "programs.run_main",
    "call": "programs.run_call",
    "answer": "answer.run_answer",
    "check": "tester.run_check",
    "suite": "suites.run_suite",
    "harness": "harness.run_harness",
    "starter": "harness.run_starter",
    "unpack": "tree.run_unpack",
    "pack": "built.run_pack",
    "unpack built": "built.run_unpack_built",
}


def runner(kind: str) -> "Callable[[list[int], dict[str, Any]], None]":
    """Return the function that a process of this kind runs; KeyError if there is none."""
    module, _, name = _RUNNERS[kind].partition(".")
    return getattr(import_module(f".{module}", __package__), name)


def load_all() -> None:
    """Load the modules of every kind."""
    for kind in _RUNNERS:
        runner(kind)
