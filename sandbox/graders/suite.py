"""`unittest`: run the task's test files in a process apart from the answer's: a verdict for each test method."""

import json

from sandbox import claims, judgement
from sandbox.errors import GraderFault, TaskFault
from sandbox.graders.common import PlainTest, apart, crash, require_compiled, verdict
from sandbox.graders.listing import is_test_file, list_tests, uses_pytest
from sandbox.jail.confinement import pytest_packages
from sandbox.jail.session import Session, new_nonce
from sandbox.limits import resolve
from schemas import NamedTest, TestVerdict, UnittestGrader, VerdictKind

RESULT_BYTES = 4 << 20
_KINDS = {
    "passed": VerdictKind.ACCEPTED,
    "failed": VerdictKind.WRONG_ANSWER,
    "skipped": VerdictKind.WRONG_ANSWER,
    "error": VerdictKind.RUNTIME_ERROR,
}


async def judge_suite(session: Session, grader: UnittestGrader) -> list[TestVerdict]:
    """Run all the files in one run. A test that is not reported as passed is not passed."""
    if session.language.run:
        raise GraderFault(f"test files are for Python, not for {session.language.name}")
    tests = listed(grader)
    limits = resolve(grader.limits, session.language.limits)
    nonce = new_nonce()
    files = [name for name in grader.files if is_test_file(name)]
    with_pytest = any(uses_pytest(source) for name, source in grader.files.items() if name.endswith(".py"))
    if with_pytest and not pytest_packages():
        raise GraderFault("the task's test files use pytest, which is not installed here: pip install pytest")
    module = grader.solution.removesuffix(".py").replace("/", ".")
    processes = apart(
        session, limits, "suite", nonce, json.dumps([module, files, with_pytest]), module=module, support=True
    )
    support = {name: text for name, text in grader.files.items() if not is_test_file(name)}
    contents = {
        "program": session.program,
        "tests": json.dumps(grader.files).encode(),
        "support": json.dumps(support).encode(),
    }
    report = await session.run(processes, limits, contents, result_bytes=RESULT_BYTES)
    claimed = claims.parse(report.result, nonce)
    require_compiled(claimed, report, limits)
    limit = judgement.limit_reached(report, limits)
    results = reported(claimed)
    verdicts: list[TestVerdict] = []
    for number, test in enumerate(tests, 1):
        status, words = results.get(test.name, (None, ""))
        if status is not None:
            kind = _KINDS[status]
        elif limit is not None:
            kind, words = limit, judgement.LIMIT_WORDS[limit]
        else:
            kind = judgement.failed_kind(report)
            words = results.get(f"{test.name.split('::')[0]}::", ("", ""))[1] or _message(claimed) or crash(report)
        verdicts.append(verdict(test, number, kind, report, words))
    return verdicts


def listed(grader: UnittestGrader) -> list[PlainTest]:
    """List the tests of the files, with what the task says about each."""
    special = {test.id: test for test in grader.tests}
    tests: list[PlainTest] = []
    for name, source in grader.files.items():
        if is_test_file(name):
            try:
                ids = list_tests(name, source)
            except ValueError as error:
                raise TaskFault(f"a test file of the task does not parse: {error}") from error
            for one in ids:
                about = special.pop(one, None) or NamedTest(id=one)
                tests.append(PlainTest(one, grader.hidden or about.hidden, about.required, about.weight))
    if special:
        raise TaskFault(f"the task speaks of a test that its files do not hold: {next(iter(special))}")
    if not tests:
        raise TaskFault("the task's files hold no test (test_*.py with classes or functions named test…)")
    return tests


def reported(claimed: claims.Claims) -> dict[str, tuple[str, str]]:
    """Read the results by test id. Reported twice (a parametrised test): the first that did not pass."""
    results: dict[str, tuple[str, str]] = {}
    for body in claimed.tests:
        one, status, words = json.loads(body)
        if results.get(one, ("passed", ""))[0] == "passed":
            results[one] = (status, words)
    return results


def _message(claimed: claims.Claims) -> str:
    body = claimed.bodies.get("raised")
    return str(json.loads(body)) if body else ""
