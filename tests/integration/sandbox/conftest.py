"""One Judge for the tests of a module: what one test does must not show in the next, as in production."""

import pytest

from sandbox import SandboxUnavailable, probe
from sandbox.host import HostReport


@pytest.fixture(scope="session")
def host() -> HostReport:
    """The host, on which every limit must be enforceable for these tests to mean anything."""
    report = probe()
    if report.problem is not None:
        raise SandboxUnavailable(report.problem)
    return report
