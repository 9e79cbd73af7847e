"""Programs of the task's, in jails: checkers, reward functions, projects."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from sandbox import GraderFault, Judge
from schemas import (
    Checker,
    Limits,
    PythonGrader,
    StdioGrader,
    StdioTest,
    VerdictKind,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
K = VerdictKind


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judge() -> AsyncIterator[Judge]:
    async with Judge(2) as judge:
        yield judge


FACTORS = """
import sys
_, output, expected = (open(name).read() for name in sys.argv[1:])
a, b = map(int, output.split())
print("product", a * b)
sys.exit(0 if a * b == int(expected) and 1 < a and 1 < b else 1)
"""


async def test_a_checker_decides(judge: Judge) -> None:
    tests = (
        StdioTest(stdin="3 5", stdout="15"),
        StdioTest(stdin="1 15", stdout="15"),
        StdioTest(stdin="x", stdout="15"),
    )
    grader = StdioGrader(tests=tests, checker=Checker(program=FACTORS))
    result = await judge.judge("print(*reversed(input().split()))", grader)
    assert [test.kind for test in result.tests] == [K.ACCEPTED, K.WRONG_ANSWER, K.WRONG_ANSWER]
    assert result.tests[1].detail == "the checker says no: product 15"


async def test_a_checker_in_cpp(judge: Judge) -> None:
    program = """
    #include <fstream>
    int main(int n, char** names) {
        std::ifstream output(names[2]), expected(names[3]);
        int a, b;
        return output >> a && expected >> b && (a - b) % 2 == 0 ? 0 : 1;
    }"""
    grader = StdioGrader(
        tests=(StdioTest(stdout="4"), StdioTest(stdout="5")), checker=Checker(program=program, language="cpp")
    )
    result = await judge.judge("print(2)", grader)
    assert [test.kind for test in result.tests] == [K.ACCEPTED, K.WRONG_ANSWER]


async def test_a_broken_checker_is_a_fault_and_one_that_hangs_says_no(judge: Judge) -> None:
    tests = (StdioTest(stdout="1"),)
    with pytest.raises(GraderFault, match="checker does not compile"):
        await judge.judge("print(1)", StdioGrader(tests=tests, checker=Checker(program="def (")))
    slow = Checker(program="while True: pass", limits=Limits(cpu_seconds=0.3))
    result = await judge.judge("print(1)", StdioGrader(tests=tests, checker=slow))
    assert [test.kind for test in result.tests] == [K.WRONG_ANSWER]


async def test_a_reward_function(judge: Judge) -> None:
    program = "def reward(completion, task):\n    return len(completion) / task['longest']"
    result = await judge.judge("abcde", PythonGrader(program=program, task={"longest": 10}))
    assert (result.reward, result.components, result.tests) == (0.5, {}, ())


async def test_a_reward_function_with_components(judge: Judge) -> None:
    program = "def reward(completion, task):\n    return {'reward': 1, 'style': 0.25, 'length': -len(completion)}"
    result = await judge.judge("ab", PythonGrader(program=program))
    assert (result.reward, result.components) == (1.0, {"style": 0.25, "length": -2.0})


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("def reward(", "does not compile"),
        ("def other(c, t): return 1", "reward"),
        ("def reward(c, t): return c.missing", "AttributeError"),
        ("def reward(c, t): return float('nan')", "no finite number"),
        ("def reward(c, t): return True", "no finite number"),
        ("def reward(c, t): return {'style': 1.0}", "needs `reward`"),
        ("def reward(c, t): return 'good'", "no finite number"),
        ("def reward(c, t): return 10 ** 400", "no finite number"),
        ("def reward(c, t): return 10 ** 5000", "no finite number"),
        ("def reward(c, t): return {'reward': 1.0, 'x': 10 ** 400}", "no finite number for x"),
        ("def reward(c, t): return {'reward': 1.0, '\\ud800': 'x'}", "no finite number for ."),
        ("def reward(c, t): return {'reward': 1.0, 3: 1.0}", "named numbers"),
        ("def reward(c, t): return {1, (2, 3)}", "no finite number"),
        ("import os\ndef reward(c, t): os._exit(0)", "failed"),
        ("def reward(c, t):\n    while True: pass", "took too long"),
    ],
)
async def test_a_reward_function_that_fails_is_a_failure_to_grade(judge: Judge, program: str, why: str) -> None:
    with pytest.raises(GraderFault, match=why):
        await judge.judge("answer", PythonGrader(program=program, limits=Limits(cpu_seconds=0.5)))
