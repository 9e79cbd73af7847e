"""An external grader decides whether it could grade, and nothing about how a group is counted."""

import json
from pathlib import Path

import pytest

from schemas import GroupDropped, Reward, Verdict
from schemas.codec import encode
from schemas.topics import VERDICTS
from streams.collect.gather import Gather
from streams.grading.reward import RewardHop
from tests.unit.streams.events import context, generation, record, rollout
from tests.unit.wire.doubles import MemoryPublisher
from wire.hop.inflight import Journal
from wire.hop.processor import Processor
from wire.kafka.records import Outgoing, Record
from wire.metrics import Metrics

ANSWERS = (rollout(index=0, text="4"), rollout(index=1, text="5"))


@pytest.mark.parametrize(
    "said",
    [
        {"fault": "deadline: the queue was long"},
        {"fault": "deadline"},
        {"fault": "poisoned: by its tests"},
        {"fault": "late", "failure": {"reason": "deadline"}},
        {"failure": {"reason": "poisoned", "detail": "by its tests"}},
    ],
)
async def test_a_grader_that_says_deadline_ends_no_group_by_its_deadline(
    said: dict[str, object], tmp_path: Path
) -> None:
    publisher = MemoryPublisher()
    hop = Processor(RewardHop(Metrics()), publisher, Journal(tmp_path), Metrics())
    for offset, answer in enumerate(ANSWERS):
        blank = json.loads(encode(Verdict(execution_id=f"e{offset}", context=context(answer)), VERDICTS))
        value = json.dumps({**blank, **said}).encode()
        await hop.process(Record("verdicts", 0, offset, "g", value, {"writer": b"grader"}, 0))
    rewards = [out.event for out in publisher.sent]
    assert all(isinstance(reward, Reward) and reward.reward is None for reward in rewards)

    gather = Gather()
    gather.assigned(0, 0)
    gather.handle(generation(), record("generations", 0), 0.0)
    for offset, answer in enumerate(ANSWERS):
        gather.handle(answer, record("rollouts", offset), 0.0)
    ends = [
        end for offset, reward in enumerate(rewards) for end in gather.handle(reward, record("rewards", offset), 0.0)
    ]
    (end,) = ends
    assert isinstance(end, Outgoing)
    assert isinstance(end.event, GroupDropped)
    assert end.event.reason == "below_minimum"
    assert str(said.get("fault", "by its tests")).split(":")[-1].strip() in end.event.detail  # people still read it
