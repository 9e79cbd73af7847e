"""A grader of the user's own, in a process of its own: the example as it stands in deploy/examples."""

import asyncio
import os
import sys
from pathlib import Path

from headwater.client import Answer, Client, Scored
from headwater.measure.score import grading_stack
from schemas import ExternalGrader
from schemas.topics import EXECUTIONS
from wire.kafka.topics import existing_topics

EXAMPLE = Path(__file__).parents[3] / "deploy/examples/external_grader.py"


async def test_the_example_grades_answers() -> None:
    grader = ExternalGrader(name="brevity", task={"longest": 4})
    answers = [Answer(id=text, text=text, grader=grader) for text in ("four", "```py\nx\n```", "eightchr")]
    async with (
        grading_stack(None, allow_unenforced=(), on_note=print) as (settings, _),
        Client(settings=settings) as client,
    ):
        environment = {"HEADWATER_KAFKA_BOOTSTRAP": settings.bootstrap, "HEADWATER_PREFIX": settings.prefix}
        example = await asyncio.create_subprocess_exec(sys.executable, str(EXAMPLE), env={**os.environ, **environment})
        try:
            scored: list[Scored] = [one async for one in client.score(answers, timeout_seconds=60)]
        finally:
            example.terminate()
            await example.wait()
        topics = await existing_topics(settings)
    assert {one.id: one.reward for one in scored} == {"four": 1.0, "```py\nx\n```": 4 / 11, "eightchr": 0.5}
    assert {one.feedback for one in scored} == {"4 characters", "11 characters", "8 characters"}
    assert topics["executions.brevity"] == topics[EXECUTIONS.name]
