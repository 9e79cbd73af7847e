"""Every shared case reaches its result, on real nsjail, with its checks on the host."""

import asyncio
from pathlib import Path

import pytest

from sandbox.cases.check import CaseResult, judge_cases, load
from sandbox.jail.host import HostReport

CASES = load(Path(__file__).parents[2] / "cases/sandbox")
CONCURRENCY = 4


@pytest.fixture(scope="module")
def results(host: HostReport) -> dict[str, CaseResult]:
    """All cases judged once, side by side."""
    present = [case for case in CASES if host.languages[case.language] is None]

    async def judged() -> dict[str, CaseResult]:
        return {result.id: result async for result in judge_cases(present, CONCURRENCY)}

    return asyncio.run(judged())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: object, results: dict[str, CaseResult], host: HostReport, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    language = next(one.language for one in CASES if one.id == name)
    missing = host.languages[language]
    if missing is not None:
        pytest.skip(f"{language} is not on this machine: {missing}")
    result = results[name]
    assert result.passed, result
