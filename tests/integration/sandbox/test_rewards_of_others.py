"""Reward functions as people have them, for TRL, verl and verifiers, run without a change."""

# ruff: noqa: E501 - a program a line

from typing import Any

import pytest

from sandbox import Judge
from sandbox.errors import GraderFault
from schemas import PythonGrader

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = [{"role": "user", "content": "2 + 2?"}]
RUBRIC = """
class Rubric:
    def __init__(self, funcs, weights): self.funcs, self.weights = funcs, weights
def right(completion, answer, **kwargs): return float(completion[-1]["content"].strip() == answer)
async def short(completion, state): return 1.0 if len(state["completion"][-1]["content"]) < 5 else 0.0
rubric = Rubric(funcs=[right, short], weights=[1.0, 0.2])
"""


@pytest.mark.parametrize(
    ("program", "function", "task", "reward"),
    [
        ("def reward(completion, task): return len(completion)", "reward", {}, 1),
        ("def reward(c, t): return t['x']", "reward", {"x": 3}, 3),
        # TRL
        ("def length(completions, **kwargs): return [len(c) for c in completions]", "length", {}, 1),
        (
            "def right(completions, answer, **kwargs): return [float(c == a) for c, a in zip(completions, answer)]",
            "right",
            {"answer": "4"},
            1,
        ),
        (
            "def right(prompts, completions, answer): return [1.0 if c[0]['content'] == a else 0.0 for c, a in zip(completions, answer)]",
            "right",
            {"prompt": CHAT, "answer": "4"},
            1,
        ),
        ("async def slow(completions, **kwargs): return [0.5 for _ in completions]", "slow", {}, 0.5),
        (
            "import re\ndef fmt(completions, **kw): return [1.0 if re.match(r'<a>', c) else 0.0 for c in completions]",
            "fmt",
            {},
            0,
        ),
        # verl
        (
            "def compute_score(data_source, solution_str, ground_truth, extra_info=None): return float(solution_str == ground_truth)",
            "compute_score",
            {"data_source": "gsm8k", "ground_truth": "4"},
            1,
        ),
        (
            "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    return {'score': 0.25, 'acc': True, 'pred': 'x'}",
            "compute_score",
            {"ground_truth": "4"},
            0.25,
        ),
        (
            "def compute_score(solution_str, ground_truth, method='strict', **kwargs): return int(solution_str == ground_truth)",
            "compute_score",
            {"ground_truth": "5"},
            0,
        ),
        # verifiers
        ("def right(completion, answer): return 1.0 if completion == answer else 0.0", "right", {"answer": "4"}, 1),
        (
            "def right(prompt, completion, answer, state): return float(len(state['prompt']) == 1 and completion[0]['content'] == answer)",
            "right",
            {"prompt": CHAT, "answer": "4"},
            1,
        ),
        (RUBRIC, "rubric", {"prompt": CHAT, "answer": "4"}, 1.2),
        (
            "def a(completion, answer): return 1.0\ndef b(completions, **kw): return [0.5]\nfuncs = [a, b]",
            "funcs",
            {"answer": "x"},
            1.5,
        ),
        ("fs = [lambda completion, answer: 1.0, lambda completion, answer: 0.5]", "fs", {"answer": "x"}, 1.5),
        ("def reward(completions, **kw): return [0.5]\nfs = [reward]", "fs", {}, 0.5),
    ],
)
async def test_they_run_as_they_are(
    program: str, function: str, task: dict[str, Any], reward: float, judge: Judge
) -> None:
    result = await judge.judge("4", PythonGrader(program=program, function=function, task=task))
    assert result.reward == pytest.approx(reward)


async def test_the_parts_of_a_rubric_are_components(judge: Judge) -> None:
    grader = PythonGrader(program=RUBRIC, function="rubric", task={"prompt": CHAT, "answer": "4"})
    assert (await judge.judge("4", grader)).components == {"right": 1.0, "short": 1.0}


@pytest.mark.parametrize(
    "program",
    [
        "def f(completions, **kw): return [None]",
        "def f(completions, **kw): return [1.0, 2.0]",
        "def f(solution_str): return {'acc': 1}",
        "def f(completion, answer): raise KeyError('x')",
        "f = 3",
        # what the task does not have is asked for
        "def f(data_source, solution_str, ground_truth): return float(solution_str == ground_truth)",
        "def f(completions, answer, **kw): return [1.0]",
        "def f(completions, completion_ids, **kw): return [float(len(ids) < 10) for ids in completion_ids]",
    ],
)
async def test_what_gives_no_number_is_no_reward(program: str, judge: Judge) -> None:
    with pytest.raises(GraderFault):
        await judge.judge("4", PythonGrader(program=program, function="f"))
