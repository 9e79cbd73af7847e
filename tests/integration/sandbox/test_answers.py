"""Handed answers, from the text to the reward: what dispatch takes out of it, and what the judge says of that."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox import Judge, score
from sandbox.comparing.exact import wrong
from sandbox.errors import TaskFault
from schemas import ExactGrader, Grader
from streams.grading.dispatch import program_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILE = Path(__file__).parents[2] / "cases/answers/outside.jsonl"
CASES = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
async def test_an_answer_gets_its_reward(case: dict[str, Any], judge: Judge) -> None:
    grader = msgspec.json.decode(json.dumps(case["grader"]), type=Grader)
    expected = case["expect"]["reward"]
    if isinstance(grader, ExactGrader):
        assert (wrong(case["answer"], grader) is None) == (expected == 1)
        return
    program = program_of(case["answer"], grader)
    if expected is None:
        with pytest.raises(TaskFault):
            await judge.judge(program, grader)
        return
    judgement = await judge.judge(program, grader)
    reward, feedback = score(judgement.kind, judgement.tests, judgement.compile_log)
    assert reward == expected, feedback
    assert {test.kind.value for test in judgement.tests} <= set(case["expect"]["verdicts"])
