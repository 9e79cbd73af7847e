"""Programs run the plain way: one unjailed process a test, so many side by side."""

import resource
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from schemas import StdioTest


@dataclass(frozen=True)
class Bare:
    """What a batch of processes took."""

    seconds: float
    cpu_seconds: float
    """Of the processes alone, without what it costs to start them from here."""


def run_all(command: Sequence[str], tests: Sequence[StdioTest], workers: int) -> Bare:
    """Every test once; each output must be right."""

    def one(test: StdioTest) -> bool:
        # close_fds=False: the quick way to start a process
        done = subprocess.run(command, input=test.stdin, capture_output=True, text=True, check=True, close_fds=False)
        return done.stdout == test.stdout

    before = _children_cpu_seconds()
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        right = list(pool.map(one, tests))
    seconds = time.perf_counter() - start
    assert all(right), "a bare program's output is wrong"
    return Bare(seconds, _children_cpu_seconds() - before)


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
