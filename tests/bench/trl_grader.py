"""The sandbox for a trainer that is not ours: a line of answers on standard input, a line of rewards back.

Each answer is `{"text", "grader"}` (the grader as JSON), each reward a number, or null where it could not be graded.
"""

import asyncio
import json
import os
import sys

import msgspec

from sandbox import GraderFault, Judge, score
from schemas import FunctionGrader
from streams.grading.dispatch import program_of

ALLOW_UNENFORCED = frozenset(filter(None, os.environ.get("HEADWATER_BENCH_ALLOW_UNENFORCED", "").split(",")))


async def main() -> None:
    """Until standard input ends."""
    async with Judge(allow_unenforced=ALLOW_UNENFORCED) as judge:
        while line := await asyncio.to_thread(sys.stdin.readline):
            answers = json.loads(line)
            print(json.dumps(await asyncio.gather(*(_reward(judge, answer) for answer in answers))), flush=True)


async def _reward(judge: Judge, answer: dict[str, str]) -> float | None:
    grader = msgspec.json.decode(answer["grader"], type=FunctionGrader)
    try:
        result = await judge.judge(program_of(answer["text"], grader), grader)
    except GraderFault:
        return None
    return score(result.kind, result.tests, result.compile_log)[0]


if __name__ == "__main__":
    asyncio.run(main())
