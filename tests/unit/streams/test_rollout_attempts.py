"""A generation whose handling failed is taken up where it stood, and its samples say so."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from schemas import Generation, PolicyVersion, Rollout
from streams.rollout.engines.recorded import RecordedEngine
from streams.rollout.follower import PolicyFollower
from streams.rollout.takeover import Takeover
from streams.rollout.worker import RolloutWorker
from tests.unit.streams.events import generation, record
from tests.unit.wire.doubles import MemoryPublisher
from wire.kafka.publisher import RecordMetadata
from wire.kafka.records import Outgoing, Record
from wire.metrics import Metrics


class HasWeights(PolicyFollower):
    def __init__(self) -> None: ...

    async def at_least(self, version: PolicyVersion | None) -> None: ...


class NothingBefore(Takeover):
    def __init__(self) -> None: ...

    async def found(self, generation: Generation, record: Record) -> Mapping[str, set[int]]:
        return {}


class BreaksOnce(MemoryPublisher):
    """After two samples the broker is away for a moment."""

    broken = False

    async def send_all(self, outs: Sequence[Outgoing]) -> list[RecordMetadata]:
        if len(self.sent) == 2 and not self.broken:
            self.broken = True
            raise ConnectionError("the broker is away")
        return await super().send_all(outs)


async def test_what_is_sampled_after_a_failure_is_a_second_attempt(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"prompt": None, "answers": ["4"]}) + "\n")
    engine, publisher = RecordedEngine(file, incarnation=1, version=1), BreaksOnce()
    await engine.start()
    worker = RolloutWorker(engine, HasWeights(), publisher, NothingBefore(), Metrics(), 8)
    event = generation(num_samples=4, admitted_at=time.time())

    with pytest.raises(ConnectionError):
        await worker.handle(event, record("generations", 0))
    await worker.handle(event, record("generations", 0))

    sent = [out.event for out in publisher.sent if isinstance(out.event, Rollout)]
    assert sorted(rollout.sample_index for rollout in sent) == [0, 1, 2, 3]
    assert [rollout.attempt for rollout in sent] == [1, 1, 2, 2]
