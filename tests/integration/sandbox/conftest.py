"""One Judge for the tests of a module: what one test does must not show in the next, as in production."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from sandbox import Judge, SandboxUnavailable, probe
from sandbox.jail.host import HostReport


@pytest.fixture(scope="session")
def host() -> HostReport:
    """The host, on which every limit must be enforceable for these tests to mean anything."""
    report = probe()
    if report.problem is not None:
        raise SandboxUnavailable(report.problem)
    return report


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judge() -> AsyncIterator[Judge]:
    """One Judge with one place: jobs follow one another in the same jail."""
    async with Judge(1) as judge:
        yield judge
