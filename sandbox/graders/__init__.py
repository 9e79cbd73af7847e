"""From a grader to verdicts: what to run for each test, and what its report means. One file a grader."""

from collections.abc import Awaitable, Callable
from typing import Any

from sandbox import judgement
from sandbox.errors import GraderFault
from sandbox.graders.check import judge_check
from sandbox.graders.common import sendable
from sandbox.graders.equivalence import judge_equivalence
from sandbox.graders.function import judge_function
from sandbox.graders.project import judge_project
from sandbox.graders.python_reward import judge_reward
from sandbox.graders.stdio import judge_stdio
from sandbox.graders.suite import judge_suite
from sandbox.jail.session import CompileError, Session
from sandbox.judgement import Judgement
from schemas import (
    CheckGrader,
    ExactGrader,
    FunctionGrader,
    Grader,
    ProjectGrader,
    PythonGrader,
    StdioGrader,
    TestVerdict,
    UnittestGrader,
    VerdictKind,
)

_GRADERS: dict[type, Callable[[Session, Any], Awaitable[list[TestVerdict]]]] = {
    StdioGrader: judge_stdio,
    FunctionGrader: judge_function,
    CheckGrader: judge_check,
    UnittestGrader: judge_suite,
    ProjectGrader: judge_project,
}


async def judge_program(session: Session, grader: Grader) -> Judgement:
    """Judge one program. Raises GraderFault (or SandboxUnavailable, where no jail starts) and nothing else."""
    if isinstance(grader, PythonGrader):
        return await judge_reward(session, grader)
    if isinstance(grader, ExactGrader):
        tests = await judge_equivalence(session, grader)
        return Judgement(judgement.worst(test.kind for test in tests), tuple(tests), "")
    run = _GRADERS.get(type(grader))
    if run is None:
        raise GraderFault(f"the sandbox does not judge {type(grader).__name__}")
    try:
        await session.open()
        tests = await run(session, grader)
    except CompileError as error:
        return Judgement(VerdictKind.COMPILE_ERROR, (), sendable(str(error)))
    return Judgement(judgement.worst(test.kind for test in tests), tuple(tests), "")
