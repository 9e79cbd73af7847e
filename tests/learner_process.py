"""A learner in a process of its own, for tests that kill it: `python -m tests.learner_process SETTINGS.json`."""

import asyncio
import json
import sys
from pathlib import Path

from learner.learner import run_learner
from tests.learner_support import learner_config
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text())
    config = learner_config(Path(given["run_directory"]), Path(given["model_directory"]), **given["changes"])
    asyncio.run(run_learner(config, KafkaSettings(**given["kafka"]), Metrics(), asyncio.Event()))


if __name__ == "__main__":
    main()
