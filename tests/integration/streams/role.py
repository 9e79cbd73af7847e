"""One role as a process, for tests that kill it: `python -m tests.integration.streams.role NAME DIRECTORY`.

The broker comes from `HEADWATER_KAFKA_*`.
"""

import asyncio
import json
import logging
import signal
import sys
from pathlib import Path

from streams.collect.collect import Collect
from streams.config import EngineConfig
from streams.grading.dispatch import Dispatch
from streams.grading.reward import RewardHop
from streams.grading.sandbox_worker import SandboxWorker
from streams.rollout.engines.recorded import RecordedEngine
from streams.rollout.worker import RolloutConfig, sample_with
from streams.scheduler.scheduler import SchedulerConfig, run_scheduler
from wire.hop.faust_hop import run_faust_hop
from wire.hop.hop import Hop
from wire.kafka.settings import KafkaSettings, from_environment
from wire.metrics import Metrics

ROLES = ("scheduler", "rollout", "dispatch", "sandbox", "reward", "collect")
GOOD = "```python\ndef double(x):\n    return 2 * x\n```"
BAD = "```python\ndef double(x):\n    return x\n```"
ANSWERS = [{"prompt": None, "answers": ["yes", "no"]}, {"prompt": "code", "answers": [GOOD, BAD]}]
ANSWER_SECONDS = 0.15
BATCH_GROUPS, MAX_STALENESS = 8, 1


async def run(name: str, directory: Path) -> None:
    """Until SIGTERM."""
    stop, metrics, settings = asyncio.Event(), Metrics(), from_environment()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    if name == "scheduler":
        scheduler = SchedulerConfig(
            run_id="run",
            run_directory=directory,
            batch_groups=BATCH_GROUPS,
            max_staleness=MAX_STALENESS,
            max_open_evaluations=4,
        )
        await run_scheduler(scheduler, settings, metrics, stop)
    elif name == "rollout":
        answers = directory / "answers.jsonl"
        answers.write_text("\n".join(json.dumps(line) for line in ANSWERS))
        rollout = RolloutConfig(
            name=name,
            run_directory=directory,
            engine=EngineConfig(kind="recorded", max_batch=8, recorded_answers=answers),
            model_directory=None,
            seed=0,
        )
        await sample_with(RecordedEngine(answers, delay_seconds=ANSWER_SECONDS), rollout, settings, metrics, stop)
    else:
        state = directory / "state" / name
        await run_faust_hop(
            _hop(name, settings, metrics),
            settings,
            stop=stop,
            instance_id=name,
            state_directory=state,
            metrics=metrics,
        )


def _hop(name: str, settings: KafkaSettings, metrics: Metrics) -> Hop:
    if name == "dispatch":
        return Dispatch()
    if name == "reward":
        return RewardHop(metrics)
    if name == "collect":
        return Collect(settings, metrics)
    from sandbox.judge import Judge

    assert name == "sandbox"
    return SandboxWorker(Judge(2), metrics)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.WARNING)
    asyncio.run(run(sys.argv[1], Path(sys.argv[2])))
