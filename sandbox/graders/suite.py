"""`unittest`: run the task's test files in a process apart from the answer's: a verdict for each test method."""

import json

from sandbox import claims, judgement
from sandbox.errors import GraderFault, TaskFault
from sandbox.graders.common import PlainTest, apart, crash, not_shown, require_compiled, together, verdict
from sandbox.graders.listing import is_test_file, marked_tests, uses_pytest
from sandbox.graders.marks import Condition, Marks
from sandbox.graders.needs import unseen
from sandbox.jail.confinement import pytest_packages
from sandbox.jail.session import Session, new_nonce
from sandbox.limits import RunLimits, resolve
from schemas import NamedTest, TestVerdict, UnittestGrader, VerdictKind

RESULT_BYTES = 4 << 20
Listed = tuple[PlainTest, Marks]
_KINDS = {
    "passed": VerdictKind.ACCEPTED,
    "failed": VerdictKind.WRONG_ANSWER,
    "xfailed": VerdictKind.WRONG_ANSWER,
    "skipped": VerdictKind.WRONG_ANSWER,
    "stopped": VerdictKind.WRONG_ANSWER,
    "error": VerdictKind.RUNTIME_ERROR,
}
_ORDER = ("passed", "xfailed", "skipped", "stopped", "failed", "error")
"""xfailed, skipped: by a mark; stopped: by a skip in the test's middle. Of a parametrised test, the last one counts."""


async def judge_suite(session: Session, grader: UnittestGrader) -> list[TestVerdict]:
    """Run all the files in one run. A test that is not reported as passed is not passed."""
    if session.language.run:
        raise GraderFault(f"test files are for Python, not for {session.language.name}")
    tests = listed(grader)
    limits = resolve(grader.limits, session.language.limits)
    if grader.in_process:
        return await _run(session, grader, tests, limits, alone=True)
    verdicts = await _run(session, grader, tests, limits, alone=False)
    failed = [one for one in verdicts if one.kind is not VerdictKind.ACCEPTED]
    if failed and (used := unseen(_tests_of(grader).values())) is not None:
        others = {one.name: one for one in await _run(session, grader, tests, limits, alone=True)}
        for one in failed:
            if one.name in others and others[one.name].kind is VerdictKind.ACCEPTED:
                raise not_shown(used, one)
    return verdicts


async def _run(
    session: Session, grader: UnittestGrader, tests: dict[str, Listed], limits: RunLimits, *, alone: bool
) -> list[TestVerdict]:
    nonce = new_nonce()
    with_pytest = any(uses_pytest(source) for name, source in grader.files.items() if name.endswith(".py"))
    if with_pytest and not pytest_packages():
        raise GraderFault("the task's test files use pytest, which is not installed here: pip install pytest")
    module = module_of(grader)
    about = json.dumps([module, list(_tests_of(grader)), with_pytest])
    support = {name: text for name, text in grader.files.items() if not is_test_file(name)}
    contents = {"program": session.program, "tests": json.dumps(grader.files).encode()}
    if alone:
        processes = together(session, limits, "suite", nonce, about)
    else:
        logs = any("log" in source.lower() for source in _tests_of(grader).values())
        processes = apart(session, limits, "suite", nonce, about, module=module, support=True, logs=logs)
        contents["support"] = json.dumps(support).encode()
    report = await session.run(processes, limits, contents, result_bytes=RESULT_BYTES)
    claimed = claims.parse(report.result, nonce)
    require_compiled(claimed, report, limits)
    limit = judgement.limit_reached(report, limits)
    results = reported(claimed)
    for name in _tests_of(grader):
        status, words = results.get(f"{name}::", ("", ""))
        if status == "skipped":
            raise TaskFault(f"{name} skips all its tests here: {words[-300:]}")
    verdicts: list[TestVerdict] = []
    for test, marks in tests.values():
        status, words = results.get(test.name, (None, ""))
        if status == "skipped" and _by_mark(marks.skip, test, "skipped"):
            if not passed_too(claimed, test.name):
                continue
            status = "passed"
        if status == "xfailed" and _by_mark(marks.xfail, test, "expected to fail"):
            status = "passed"
        if status is not None:
            kind = _KINDS[status]
        elif limit is not None:
            kind, words = limit, judgement.LIMIT_WORDS[limit]
        else:
            kind = judgement.failed_kind(report)
            words = results.get(f"{test.name.split('::')[0]}::", ("", ""))[1] or _message(claimed) or crash(report)
        verdicts.append(verdict(test, len(verdicts) + 1, kind, report, words))
    if not verdicts:
        raise TaskFault("every test of the task's files is skipped here")
    return verdicts


def _by_mark(condition: Condition, test: PlainTest, how: str) -> bool:
    """Whether a mark of the task's own made a test end so, and not the answer; TaskFault where either may have."""
    if condition == "unclear":
        raise TaskFault(f"{test.name} is {how} on a condition that an answer could meet: mark it without one")
    return condition in ("host", "always")


def module_of(grader: UnittestGrader) -> str:
    """The name by which the tests import the answer."""
    return grader.solution.removesuffix(".py").replace("/", ".")


def _tests_of(grader: UnittestGrader) -> dict[str, str]:
    return {name: source for name, source in grader.files.items() if is_test_file(name)}


def listed(grader: UnittestGrader) -> dict[str, Listed]:
    """List the tests of the files, but those that these mark as skipped, with what the task says about each."""
    special = {test.id: test for test in grader.tests}
    tests: dict[str, Listed] = {}
    found = False
    for name, source in _tests_of(grader).items():
        try:
            marked = marked_tests(name, source, module_of(grader))
        except ValueError as error:
            raise TaskFault(f"a test file of the task does not parse: {error}") from error
        for one, marks in marked.items():
            found = True
            about = special.pop(one, None) or NamedTest(id=one)
            if marks.skip != "always":
                plain = PlainTest(one, grader.hidden or about.hidden, about.required, about.weight)
                tests[one] = (plain, marks)
    if special:
        raise TaskFault(f"the task speaks of a test that its files do not hold: {next(iter(special))}")
    if not tests and found:
        raise TaskFault("the task's files mark every test as skipped")
    if not tests:
        raise TaskFault("the task's files hold no test (test_*.py with classes or functions named test…)")
    return tests


def reported(claimed: claims.Claims) -> dict[str, tuple[str, str]]:
    """Read the results by test id: of a test reported more than once (a parametrised one), the worst."""
    results: dict[str, tuple[str, str]] = {}
    for body in claimed.tests:
        one, status, words = json.loads(body)
        if one not in results or _ORDER.index(status) > _ORDER.index(results[one][0]):
            results[one] = (status, words)
    return results


def passed_too(claimed: claims.Claims, test: str) -> bool:
    """Whether a parametrised test, some of which a mark skips, has passed with its other parameters."""
    return any(json.loads(body)[:2] == [test, "passed"] for body in claimed.tests)


def _message(claimed: claims.Claims) -> str:
    body = claimed.bodies.get("raised")
    return str(json.loads(body)) if body else ""
