"""The tester's process for whole test files: unittest classes, and plain test functions and classes.

The files lie in a folder of the tester's own, which the answer can neither read nor write; the answer's
module is a stand-in (`stand_ins.py`). Each result is claimed as it comes, so that what passed before a
limit still counts.
"""

# ruff: noqa: PTH103, PTH118, PTH120, PTH123 - every jail would load pathlib for a handful of calls

import importlib
import json
import os
import sys
import tempfile
import traceback
import unittest
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from . import programs, stand_ins, tester
from .link import Json, Link
from .remote import Remote

Report = Callable[[str, str, str], None]


class Result(unittest.TestResult):
    """Claims each test of unittest's as it ends."""

    def __init__(self, file: str, report: Report) -> None:
        super().__init__()
        self.file = file
        self.report = report
        self.problem: tuple[str, str] | None = None

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        self.problem = None
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        status, message = self.problem or ("passed", "")
        method = getattr(test, "_testMethodName", "")
        self.report(f"{self.file}::{type(test).__name__}::{method}", status, message)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self.note("error", err[1])
        if not isinstance(test, unittest.TestCase):  # setUpClass, setUpModule: no test of its own
            self.report(f"{self.file}::", "error", str(err[1])[:500])

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.note("failed", err[1])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self.note("failed" if isinstance(err[1], AssertionError) else "error", err[1])

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        self.problem = self.problem or ("skipped" if is_marked(test, "__unittest_skip__") else "stopped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.problem = self.problem or ("xfailed", "failed, as was expected")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        self.problem = ("failed", "passed, and was expected to fail")

    def note(self, status: str, error: BaseException) -> None:
        self.problem = self.problem or (status, described(error))


def is_marked(test: Any, mark: str) -> bool:
    """Whether unittest's decorators have marked a test or its class, as opposed to a skip in its middle."""
    method = getattr(type(test), getattr(test, "_testMethodName", ""), None)
    return bool(getattr(type(test), mark, False) or getattr(method, mark, False))


def described(error: BaseException) -> str:
    """Say what a test raised, and at which of its lines."""
    lines = [frame.line or "" for frame in traceback.extract_tb(error.__traceback__) if "/tests-" in frame.filename]
    return f"{lines[-1] if lines else ''}\n{type(error).__name__}: {error}".strip()[:1500]


def run_suite(descriptors: "list[int]", process: Json) -> None:
    """Write the files, stand the answer in, run every test."""
    files = json.loads(programs.read_all(descriptors[0]))
    remote = Remote(Link(descriptors[1]), stand_ins.StandIn, stand_ins.awaited)
    claims = programs.ResultPipe(descriptors[2], process["nonce"])
    module_name, test_files, with_pytest = json.loads(process["entry_point"])
    names = tester.await_answer(remote.link, claims)
    folder = tempfile.mkdtemp(prefix="tests-", dir="/tmp")
    write_files(folder, files)
    tester.common_ground(remote, "".join(files.values()))
    remote.test_modules |= {name.removesuffix(".py").replace("/", ".") for name in files}
    remote.test_modules |= {name.removesuffix(".py").rpartition("/")[2] for name in files}
    stand_in(folder, stand_ins.AnswerModule(module_name, remote, names))

    def report(test: str, status: str, message: str) -> None:
        if remote.ended and status in ("passed", "xfailed"):
            status, message = "error", "the answer's process ended"
        message = message.replace(f"{folder}/", "")
        claims.write("test", json.dumps([test, status, message[: programs.MAX_MESSAGE]]).encode())

    run_files(folder, test_files, report, with_pytest=with_pytest, collected=remote.mirror.install_pytest)
    claims.write("ended", b"null")
    programs.leave()


def write_files(folder: str, files: "dict[str, str]") -> None:
    """Write the task's files, go there, and let them be imported from there."""
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    os.chdir(folder)
    sys.path.insert(0, folder)


def run_files(
    folder: str,
    names: "list[str]",
    report: Report,
    *,
    with_pytest: bool,
    collected: "Callable[[], None]" = lambda: None,
) -> None:
    """Run the tests of files."""
    if with_pytest:
        from . import pytest_suites

        pytest_suites.run_files(folder, names, report, collected)
        return
    for name in names:
        run_file(name, report)


def stand_in(folder: str, module: ModuleType) -> None:
    """Put the stand-in where `import` finds it, below its packages if it has any."""
    parts = module.__name__.split(".")
    sys.modules[module.__name__] = module
    for depth in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:depth])
        package = ModuleType(name)
        package.__path__ = [os.path.join(folder, *parts[:depth])]
        sys.modules[name] = package
        setattr(package, parts[depth], sys.modules[".".join(parts[: depth + 1])])


def run_file(name: str, report: Report) -> None:
    """Run every test of one file. A file that cannot be imported reports none: all its tests failed."""
    try:
        module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
    except unittest.SkipTest as error:
        report(f"{name}::", "skipped", str(error))
        return
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        report(f"{name}::", "error", described(error))
        return
    suite = unittest.TestSuite()
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            if issubclass(value, unittest.TestCase):
                suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(value))
            elif value.__name__.startswith("Test"):
                run_plain_class(name, value, report)
        elif is_test_function(value, module):
            run_one(f"{name}::{value.__name__}", value, report)
    suite.run(Result(name, report))


def is_test_function(value: object, module: ModuleType) -> bool:
    """Whether a global of a test file is a test of that file, and not one that it imported."""
    return isinstance(value, FunctionType) and value.__module__ == module.__name__ and value.__name__.startswith("test")


def run_plain_class(name: str, kind: type, report: Report) -> None:
    """Run the methods of a test class that is not unittest's, each on an instance of its own."""
    for method in sorted(dir(kind)):
        if method.startswith("test"):

            def call(method: str = method) -> None:
                instance = kind()
                getattr(instance, "setup_method", lambda *_: None)()
                getattr(instance, method)()
                getattr(instance, "teardown_method", lambda *_: None)()

            run_one(f"{name}::{kind.__name__}::{method}", call, report)


def run_one(test: str, function: "Callable[[], Any]", report: Report) -> None:
    """Run one plain test."""
    try:
        function()
    except unittest.SkipTest as error:
        report(test, "stopped", str(error))
    except AssertionError as error:
        report(test, "failed", described(error))
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        report(test, "error", described(error))
    else:
        report(test, "passed", "")
