"""What the test's process and the answer's have in common where plain Python has one: told with each request and reply.

From the test to the answer: environment variables, the folder it is in, a seed it has set, standard input it has put in
place, what it has patched in Python's own modules. Back: warnings, log records, new environment variables.
Everything that comes back is data, and is checked as such.
"""

# ruff: noqa: PTH109 - every jail would load pathlib for a handful of calls

import builtins
import io
import os
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
_MAX_TOLD = 1000
_NOT_THEIRS = ("PYTHON", "LD_", "PATH", "HOME", "TMPDIR")


class Mirror:
    """The test's side."""

    def __init__(self) -> None:
        self.environ = dict(os.environ)
        self.folder = ""
        self.seeded = False
        self.input = builtins.input
        self.patched: list[tuple[Any, str]] = []
        self._monkeys: list[Any] = []

    def install(self) -> None:
        """Notice seeds and patches from now on."""
        for name in ("seed", "setstate"):
            setattr(random, name, self._noting(getattr(random, name)))
        mock = sys.modules.get("unittest.mock")
        if mock is not None:
            self._watch(mock._patch, "__enter__", "__exit__")

    def install_pytest(self) -> None:
        """Notice what pytest's fixture patches."""
        self._watch_monkey(sys.modules["_pytest.monkeypatch"].MonkeyPatch)  # pyright: ignore[reportAttributeAccessIssue]

    def _noting(self, set_state: "Callable[..., Any]") -> "Callable[..., Any]":
        def noted(*arguments: Any, **named: Any) -> Any:
            self.seeded = True
            return set_state(*arguments, **named)

        return noted

    def _watch(self, kind: Any, enter: str, leave: str) -> None:
        begin, end = getattr(kind, enter), getattr(kind, leave)

        def entered(patch: Any) -> Any:
            value = begin(patch)
            self.patched.append((patch.target, patch.attribute))
            return value

        def left(patch: Any, *error: Any) -> Any:
            place = (patch.target, patch.attribute)
            if place in self.patched:
                self.patched.remove(place)
            return end(patch, *error)

        setattr(kind, enter, entered)
        setattr(kind, leave, left)

    def _watch_monkey(self, kind: Any) -> None:
        begin = kind.setattr

        def noted(monkey: Any, *arguments: Any, **named: Any) -> None:
            begin(monkey, *arguments, **named)
            if monkey not in self._monkeys:
                self._monkeys.append(monkey)

        kind.setattr = noted

    def told(self) -> Json:
        """What the answer's process must be like for the next request; values of patches are not packed yet."""
        message: Json = {}
        now = dict(os.environ)
        if now != self.environ:
            gone = [name for name in self.environ if name not in now]
            message["environ"] = [{name: value for name, value in now.items() if self.environ.get(name) != value}, gone]
            self.environ = now
        folder = os.getcwd()
        if self.folder and folder != self.folder:
            message["folder"] = folder
            self.folder = folder
        if self.seeded:
            version, state, gauss = random.getstate()
            message["random"] = [version, list(state), gauss]
            self.seeded = False
        stdin = sys.stdin
        if stdin is not sys.__stdin__ and isinstance(stdin, io.StringIO | io.TextIOWrapper) and not stdin.closed:
            place = stdin.tell()
            message["stdin"] = stdin.read()
            stdin.seek(place)
        patches = self._patches()
        if patches:
            message["patches"] = patches
        return message

    def _patches(self) -> "list[list[Any]]":
        of_monkeys = [(target, name) for monkey in self._monkeys for target, name, _ in monkey._setattr]
        places = [*self.patched, *of_monkeys]
        if builtins.input is not self.input:
            places.append((builtins, "input"))
        found: list[list[Any]] = []
        for target, name in places:
            module = getattr(target, "__name__" if isinstance(target, type(sys)) else "__module__", "")
            if module in ("sys", "os") and name in ("stdin", "stdout", "stderr", "environ"):
                continue
            if module.partition(".")[0] in sys.stdlib_module_names and isinstance(target, type(sys) | type):
                path = name if isinstance(target, type(sys)) else f"{target.__qualname__}.{name}"
                found.append([module, path, getattr(target, name)])
        return found

    def heard(self, reply: Json, category: "Callable[[Any], type[BaseException]]") -> None:
        """Let what the answer's side has told happen here."""
        changed = reply.get("environ")
        if isinstance(changed, dict):
            for name, value in list(changed.items())[:_MAX_TOLD]:
                if isinstance(value, str) and not name.startswith(_NOT_THEIRS):
                    os.environ[name] = value
            self.environ = dict(os.environ)
        used = reply.get("stdin used")
        if isinstance(used, int) and isinstance(sys.stdin, io.StringIO | io.TextIOWrapper):
            sys.stdin.read(max(0, used))
        for record in list(reply.get("logs", ()))[:_MAX_TOLD]:
            _log(record)
        for about, words, file, line in list(reply.get("warnings", ()))[:_MAX_TOLD]:
            kind = category(about)
            if issubclass(kind, Warning):
                warnings.warn_explicit(str(words), kind, str(file), int(line))


def _log(record: Any) -> None:
    import logging

    name, level, words, file, line, function = record
    logger = logging.getLogger(str(name))
    if logger.isEnabledFor(int(level)):
        made = logging.LogRecord(str(name), int(level), str(file), int(line), str(words), None, None, str(function))
        logger.handle(made)
