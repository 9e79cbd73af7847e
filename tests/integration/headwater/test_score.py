"""Grading through the stream: a broker, dispatch, sandbox and reward of its own."""

import json
from pathlib import Path
from typing import Any

from headwater.client import Answer, Scored
from headwater.measure.score import domain_answers, score_answers, summary
from schemas import FunctionGrader, FunctionTest
from tasks.domains.humaneval import HUMANEVAL
from tests.integration.headwater.conftest import headwater

TESTS = [([n], n * 3) for n in range(10)]


def tasks() -> list[tuple[Answer, float]]:
    """Twenty answers to "three times n", and the fraction of its ten tests that each passes."""
    grader = FunctionGrader(entry_point="f", tests=tuple(FunctionTest.of(args, value) for args, value in TESTS))
    bodies: list[tuple[str, float]] = [("return n * 3", 1.0), ("return n + n + n", 1.0)]
    bodies += [(f"return n * 3 if n < {k} else -1", k / 10) for k in range(11)]
    bodies += [
        ("return None", 0.0),
        ("raise ValueError(n)", 0.0),
        ("return str(n * 3)", 0.0),
        ("return n * 3 if n % 2 else n", 0.6),  # the odd ones, and 0
        ("import sys; sys.exit(0)", 0.0),
        ("return n *", -1.0),
        ("return (", -1.0),
    ]
    assert len(bodies) == 20
    return [
        (
            Answer(id=f"task-{i}", text=f"Here:\n```python\ndef f(n):\n    {body}\n```", grader=grader),
            fraction,
        )
        for i, (body, fraction) in enumerate(bodies)
    ]


async def test_twenty_function_tasks_of_known_fractions() -> None:
    seen: list[Scored] = []
    known = tasks()
    scored = await score_answers(
        [answer for answer, _ in known], None, allow_unenforced=(), on_note=print, on_scored=seen.append
    )
    assert {one.id: one.reward for one in scored} == {answer.id: fraction for answer, fraction in known}
    assert len(seen) == 20
    assert {one.verdict for one in scored if one.reward == -1.0} == {"compile_error"}


async def test_humaneval_canonical_and_emptied() -> None:
    canonical = domain_answers(HUMANEVAL, "canonical")
    emptied = [Answer(id=f"{a.id} emptied", text=a.text, grader=a.grader) for a in domain_answers(HUMANEVAL, "empty")]
    scored = await score_answers(
        [*canonical, *emptied], None, allow_unenforced=(), on_note=print, on_scored=lambda _: None
    )
    assert summary(scored[:164])["reward_1"] == 164
    assert summary(scored[164:])["reward_1"] == 0
    assert summary(scored)["scorable"] == 328


def test_the_command_prints_one_object_an_answer(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "right", "answer": "It is\n42", "grader": {"kind": "exact", "answer": "42"}},
        {"id": "wrong", "answer": "It is\n41", "grader": {"kind": "exact", "answer": "42"}},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = headwater("score", "--dataset", str(path), "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    answers = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [(answer["id"], answer["reward"]) for answer in answers] == [("right", 1.0), ("wrong", 0.0)]
