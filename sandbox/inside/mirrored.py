"""The answer's side of `mirror.py`: be as the test's process is, for one request, and tell what happened meanwhile."""

import contextlib
import io
import os
import random
import sys
import warnings
from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any

Json = dict[str, Any]
_MAX_TOLD = 1000


class Mirrored:
    """Applies what the test told; gathers warnings and log records."""

    def __init__(self, about: "Callable[[type], Json]") -> None:
        self.about = about
        self.warnings: list[list[Any]] = []
        self.logs: list[list[Any]] = []
        self.environ = dict(os.environ)

    def install(self, *, logs: bool) -> None:
        """Gather from now on."""
        warnings.simplefilter("always")
        warnings.showwarning = self._warned
        if logs:
            import logging

            handle = logging.Logger.callHandlers

            def told(logger: Any, record: Any) -> None:
                if len(self.logs) < _MAX_TOLD:
                    told = [
                        record.name,
                        record.levelno,
                        record.getMessage(),
                        record.pathname,
                        record.lineno,
                        record.funcName,
                    ]
                    self.logs.append(told)
                handle(logger, record)

            setattr(logging.Logger, "callHandlers", told)  # noqa: B010 - not its signature
            logging.lastResort = None
            logging.getLogger().setLevel(1)

    def _warned(self, message: Any, category: Any, filename: str, lineno: int, *_: object) -> None:
        if len(self.warnings) < _MAX_TOLD:
            self.warnings.append([self.about(category), str(message), filename, lineno])

    @contextlib.contextmanager
    def like(self, told: Json, unpack: "Callable[[Any], Any]", reply: Json) -> "Generator[None]":
        """Be as the test's process is, and put into `reply` what it must hear of."""
        if "environ" in told:
            new, gone = told["environ"]
            os.environ.update(new)
            for name in gone:
                os.environ.pop(name, None)
        if "folder" in told:
            with contextlib.suppress(OSError):
                os.chdir(told["folder"])
        if "random" in told:
            version, state, gauss = told["random"]
            random.setstate((version, tuple(state), gauss))
        before = dict(os.environ)
        stdin, text = sys.stdin, told.get("stdin")
        if text is not None:
            sys.stdin = io.StringIO(text)
        patched = [one for part in told.get("patches", ()) for one in _patch(part[0], part[1], unpack(part[2]))]
        try:
            yield
        finally:
            for target, name, value in reversed(patched):
                setattr(target, name, value)
            if text is not None:
                if isinstance(sys.stdin, io.StringIO) and not sys.stdin.closed:
                    reply["stdin used"] = sys.stdin.tell()
                sys.stdin = stdin
            now = dict(os.environ)
            if now != before:
                reply["environ"] = {name: value for name, value in now.items() if before.get(name) != value}
            if self.warnings:
                reply["warnings"], self.warnings = self.warnings, []
            if self.logs:
                reply["logs"], self.logs = self.logs, []


def _patch(module: str, path: str, value: Any) -> "list[tuple[Any, str, Any]]":
    """Put a value in place of a module's: what to put back."""
    target = import_module(module)
    *outer, name = path.split(".")
    for one in outer:
        target = getattr(target, one)
    try:
        old = getattr(target, name)
        setattr(target, name, value)
    except (AttributeError, TypeError):
        return []
    return [(target, name, old)]
