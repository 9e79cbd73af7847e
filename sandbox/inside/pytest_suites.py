"""The tester's process for test files that use pytest: its fixtures, parameters and plain assertions.

pytest comes from the host's own Python packages, read-only, and is on the path of the tester only.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from typing import Any

from .protocol import PYTEST


class Collector:
    """Hands on each test's outcome: passed only if set-up, call and tear-down all passed."""

    def __init__(self, report: "Callable[[str, str, str], None]", collected: "Callable[[], None]") -> None:
        self.report = report
        self.collected = collected
        self.worst: dict[str, tuple[str, str]] = {}
        self.marked: set[tuple[str, str]] = set()
        """Items that a mark, and not the middle of a test, skips or expects to fail: (id, `skipped` or `xfailed`)."""
        self.passed: set[str] = set()
        self.left: Counter[str] = Counter()
        """Items still to come, by test: one for every set of parameters."""

    def pytest_collection_finish(self, session: Any) -> None:
        """Called by pytest when all files have been looked into."""
        self.collected()
        self.left.update(item.nodeid.split("[")[0] for item in session.items)

    def pytest_runtest_setup(self, item: Any) -> None:
        """Called by pytest before a test; its own marks have not been asked yet."""
        from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks

        places = (item.obj, item.cls)
        if evaluate_skip_marks(item) or any(getattr(one, "__unittest_skip__", False) for one in places):
            self.marked.add((item.nodeid, "skipped"))
        if evaluate_xfail_marks(item) or any(getattr(one, "__unittest_expecting_failure__", False) for one in places):
            self.marked.add((item.nodeid, "xfailed"))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called by pytest after each phase of each test."""
        status, words = self.worst.get(report.nodeid, ("passed", ""))
        if status in ("passed", "xfailed") and report.outcome != "passed":
            by_mark = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            stopped = by_mark if (report.nodeid, by_mark) in self.marked else "stopped"
            status = stopped if report.outcome == "skipped" else "failed" if report.when == "call" else "error"
            words = str(report.longrepr)[-1500:]
        self.worst[report.nodeid] = (status, words)
        if report.when == "teardown":
            test = report.nodeid.split("[")[0]
            self.left[test] -= 1
            if status != "passed":
                self.report(test, status, words)
            else:
                self.passed.add(test)
            if test in self.passed and self.left[test] == 0:  # passed only with its last parameters
                self.report(test, "passed", "")

    def pytest_collectreport(self, report: Any) -> None:
        """Called by pytest for each file and class that it looked into."""
        if report.outcome == "failed" and report.nodeid:
            self.report(f"{report.nodeid.split('::')[0]}::", "error", str(report.longrepr)[-1500:])
        elif report.outcome == "skipped" and report.nodeid:
            self.report(f"{report.nodeid.split('::')[0]}::", "skipped", str(report.longrepr)[-1500:])


def run_files(
    folder: str, names: "list[str]", report: "Callable[[str, str, str], None]", collected: "Callable[[], None]"
) -> None:
    """Run the files with pytest, in this process."""
    sys.dont_write_bytecode = True
    sys.path.append(PYTEST)
    import pytest

    plugins = ["-p", "no:cacheprovider", "-p", "no:faulthandler"]
    arguments = [
        "-q",
        *plugins,
        "--tb=short",
        "--basetemp",
        f"{tempfile.gettempdir()}/pytest",
        "--rootdir",
        folder,
        "-c",
        "/dev/null",
    ]
    pytest.hookimpl(tryfirst=True)(Collector.pytest_runtest_setup)
    pytest.main([*arguments, *names], plugins=[Collector(report, collected)])
