"""Test files as libraries have them: a right answer is right across two processes, or unscorable; never a 0."""

import pytest

from sandbox import Judge
from sandbox.errors import TaskFault
from schemas import UnittestGrader, VerdictKind
from tests.integration.sandbox.library_tests import FILES

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEED_ONE_PROCESS = {"context managers", "super", "pickles", "weak references", "equal to plain data"}
"""What two processes cannot show: of the files here, these alone."""


@pytest.mark.parametrize("name", FILES)
async def test_a_right_answer(name: str, judge: Judge) -> None:
    program, tests = FILES[name]
    alone = await judge.judge(program, UnittestGrader(files={"test_a.py": tests}, in_process=True))
    assert alone.kind is VerdictKind.ACCEPTED, alone.tests
    grader = UnittestGrader(files={"test_a.py": tests})
    if name in NEED_ONE_PROCESS:
        with pytest.raises(TaskFault, match="in_process"):
            await judge.judge(program, grader)
    else:
        apart = await judge.judge(program, grader)
        assert apart.kind is VerdictKind.ACCEPTED, apart.tests
