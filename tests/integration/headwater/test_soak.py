"""A run whose processes are killed again and again (`make soak`)."""

import asyncio
import json
import os
import random
import signal

import pytest

from tests.integration.headwater.conftest import Up

ROLES = ("sandbox", "rollout", "dispatch", "reward", "collect", "learner", "scheduler")
ROUNDS = 4
"""Kills of each role; five within five minutes would end the run, as they should."""
UPDATES = 100


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_many_kills_in_one_run(up: Up) -> None:
    """One role after another, the next within moments: every group still ends once, and none is trained twice."""
    up.demo("chaos", UPDATES, "training.checkpoint_every_updates=3")
    await up.until("— training")
    order = random.Random(0)
    for _ in range(ROUNDS):
        for role in order.sample(ROLES, len(ROLES)):
            await asyncio.sleep(order.uniform(0.2, 5.0))
            os.kill(await up.started(role, "chaos"), signal.SIGKILL)
    assert await up.ends(600) == 0, up.output
    summary = json.loads((up.runs / "chaos" / "report" / "summary.json").read_text())
    assert summary["updates"] == UPDATES
    assert summary["groups_trained"] == 4 * UPDATES
    assert summary["groups_unaccounted"] == summary["groups_trained_twice"] == 0
    assert up.output.count("killed by SIGKILL") == ROUNDS * len(ROLES)
