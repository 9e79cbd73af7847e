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
        self.left: Counter[str] = Counter()
        """Items still to come, by test: one for every set of parameters."""

    def pytest_collection_finish(self, session: Any) -> None:
        """Called by pytest when all files have been looked into."""
        self.collected()
        self.left.update(item.nodeid.split("[")[0] for item in session.items)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called by pytest after each phase of each test."""
        status, words = self.worst.get(report.nodeid, ("passed", ""))
        failed_as_expected = report.outcome == "skipped" and hasattr(report, "wasxfail")
        if status == "passed" and report.outcome != "passed" and not failed_as_expected:
            status = {"skipped": "skipped"}.get(report.outcome, "failed" if report.when == "call" else "error")
            words = str(report.longrepr)[-1500:]
        self.worst[report.nodeid] = (status, words)
        if report.when == "teardown":
            test = report.nodeid.split("[")[0]
            self.left[test] -= 1
            if status != "passed" or self.left[test] == 0:  # passed only with its last parameters
                self.report(test, status, words)

    def pytest_collectreport(self, report: Any) -> None:
        """Called by pytest for each file and class that it looked into."""
        if report.outcome == "failed" and report.nodeid:
            self.report(f"{report.nodeid.split('::')[0]}::", "error", str(report.longrepr)[-1500:])


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
    pytest.main([*arguments, *names], plugins=[Collector(report, collected)])
