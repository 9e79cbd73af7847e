"""The public function of the design: one answer and its tests in, reward and feedback out."""

import asyncio
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from sandbox.judge import Judge
from sandbox.reward_rule import score
from schemas import CheckGrader, FunctionGrader, FunctionTest, Grader, Limits, StdioGrader, StdioTest

TestCase = Mapping[str, Any] | str


def execute_and_evaluate(
    generated_code: str,
    test_cases: Sequence[TestCase],
    *,
    language: str = "python",
    entry_point: str | None = None,
    limits: Limits | None = None,
    allow_unenforced: AbstractSet[str] = frozenset(),
) -> tuple[float, str]:
    """Judge `generated_code` and return (reward, feedback); GraderFault if it could not be graded.

    test_cases: all of one form. `{"args": [...], "expected": ...}`: calls of `entry_point`.
    `{"stdin": ..., "stdout": ...}`: runs of the program. One text: a test program, which asserts, or
    defines `check(candidate)`. Further keys of the dicts: `name`, `hidden`, `weight`, `required`.

    Starts a sandbox for this one answer: for many, use `Judge`. Not from within a running event loop.
    """
    grader = grader_of(test_cases, language, entry_point, limits or Limits())

    async def judged() -> tuple[float, str]:
        async with Judge(1, ahead=None, allow_unenforced=allow_unenforced) as judge:
            result = await judge.judge(generated_code, grader)
        return score(result.kind, result.tests, result.compile_log)

    return asyncio.run(judged())


def grader_of(test_cases: Sequence[TestCase], language: str, entry_point: str | None, limits: Limits) -> Grader:
    """Choose the grader that the form of the tests asks for."""
    if not test_cases:
        raise ValueError("no test cases")
    texts = [case for case in test_cases if isinstance(case, str)]
    cases = [dict(case) for case in test_cases if not isinstance(case, str)]
    if texts:
        if len(test_cases) != 1:
            raise ValueError("a test program is one text, alone")
        return CheckGrader(entry_point=entry_point or "", program=texts[0], language=language, limits=limits)
    if all("args" in case for case in cases):
        if entry_point is None:
            raise ValueError("tests with args need entry_point")
        tests = tuple(FunctionTest.of(case.pop("args"), case.pop("expected"), **case) for case in cases)
        return FunctionGrader(entry_point=entry_point, tests=tests, language=language, limits=limits)
    if all("stdout" in case for case in cases):
        return StdioGrader(tests=tuple(StdioTest(**case) for case in cases), language=language, limits=limits)
    raise ValueError("a test case is {'args', 'expected'} or {'stdin', 'stdout'}, all of one form, or one text")
