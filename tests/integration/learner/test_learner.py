"""The whole learner against a real broker, on groups made by hand."""

import asyncio
import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from transformers import AutoModelForCausalLM

from learner.book.checkpoints import load_position, newest_checkpoint
from learner.book.incarnation import take_incarnation
from learner.book.ledger import LEDGER, ROLLED_BACK, check_ledger, read_ledger
from learner.config import LearnerConfig
from learner.errors import Superseded
from learner.learner import run_learner
from schemas import Drained, DropReason, Event, GroupDropped, PolicyVersion, Progress, Trajectory, WeightUpdate
from schemas.codec import decode
from schemas.topics import DEAD_LETTERS, PROGRESS, TRAJECTORIES, WEIGHTS, TopicSpec
from tests.learner_support import learner_config, lines, trajectory
from wire.errors import StoredOffsetOutOfRange
from wire.kafka.clients import connect, make_producer
from wire.kafka.log_reader import LogReader
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import apply_topics, read_log_id
from wire.metrics import Metrics
from wire.weights.snapshots import fetch

PARTITIONS = 4


async def publish(kafka: KafkaSettings, events: Iterable[Trajectory | GroupDropped | Drained]) -> None:
    async with Publisher(kafka, "collect") as publisher:
        for event in events:
            if isinstance(event, Drained):
                for partition in range(PARTITIONS):
                    await publisher.send(Outgoing(TRAJECTORIES.name, "drained", event, partition))
            else:
                await publisher.send(Outgoing(TRAJECTORIES.name, event.group_id, event))


async def events_of(kafka: KafkaSettings, topic: TopicSpec) -> list[Event]:
    async with LogReader(kafka) as reader:
        return [decode(record.value, topic) for record in await reader.read_all(topic.name)]


async def published(kafka: KafkaSettings) -> tuple[list[WeightUpdate], list[Progress]]:
    weights = [event for event in await events_of(kafka, WEIGHTS) if isinstance(event, WeightUpdate)]
    progress = [event for event in await events_of(kafka, PROGRESS) if isinstance(event, Progress)]
    return weights, progress


async def run(config: LearnerConfig, kafka: KafkaSettings, stop: asyncio.Event | None = None) -> Metrics:
    metrics = Metrics()
    async with asyncio.timeout(120):
        await run_learner(config, kafka, metrics, stop or asyncio.Event())
    return metrics


async def version_on_progress(kafka: KafkaSettings, version: int) -> None:
    """Wait until the learner has told of this version."""
    async with asyncio.timeout(120):
        while not any(each.version >= version for each in (await published(kafka))[1]):  # noqa: ASYNC110
            await asyncio.sleep(0.3)


def dropped(number: int, log_id: str) -> GroupDropped:
    return GroupDropped(
        group_id=f"group-{number}",
        log_id=log_id,
        admission_number=number,
        domain="sums",
        reason=DropReason.ZERO_SPREAD,
    )


async def test_trains_publishes_and_accounts_for_every_group(
    kafka: KafkaSettings, tmp_path: Path, model_directory: Path
):
    config = learner_config(tmp_path, model_directory, max_staleness=5)
    log_id = await read_log_id(kafka)
    groups = [trajectory(number, log_id=log_id) for number in range(6)]
    bad = msgspec.structs.replace(trajectory(7, log_id=log_id), temperature=0.0)
    producer = make_producer(kafka, "stranger")
    await connect(producer, kafka)
    await producer.send_and_wait(kafka.name(TRAJECTORIES.name), b"{", partition=0)
    await producer.stop()
    await publish(kafka, [*groups[:3], dropped(6, log_id), bad, *groups[:2], *groups[3:]])
    await publish(
        kafka,
        [trajectory(3, log_id="another log"), Drained(log_id=log_id, admitted=8, reason="run_ended", incarnation=1)],
    )

    metrics = await run(config, kafka)

    ledger = read_ledger(tmp_path / LEDGER)
    assert check_ledger(ledger, {log_id: range(8)}).ok
    outcomes = {line.admission_number: line.outcome for line in ledger}
    assert outcomes == dict.fromkeys(range(6), "trained") | {6: "zero_spread", 7: "poisoned"}

    weights, progress = await published(kafka)
    assert [(update.incarnation, update.version) for update in weights] == [(1, 0), (1, 1), (1, 2), (1, 3)]
    # told of a step's ends before its weights are out, the scheduler would admit groups that begin with the old ones
    assert [each.weights for each in progress] == [PolicyVersion(1, each.version) for each in progress]
    last = progress[-1]
    assert (last.version, last.closing, last.finished, last.ended_low) == (3, True, True, 8)
    assert last.outcomes == {"trained": 6, "zero_spread": 1, "poisoned": 1}
    # bad JSON gave no number: the source knows the others
    assert last.sources["train"].above == (7,)
    assert not any(each.finished for each in progress[:-1])

    updates = lines(tmp_path / "metrics.jsonl")
    assert [(update["version"], update["incarnation"], update["groups"]) for update in updates] == [
        (1, 1, 2),
        (2, 1, 2),
        (3, 1, 2),
    ]
    assert updates[0]["reward_mean_by_domain"] == {"sums": 0.0}
    assert [update["staleness_max"] for update in updates] == [0, 1, 2]
    assert updates[0]["kl"] >= 0
    assert updates[0]["grad_norm"] > 0

    position = load_position(newest_checkpoint(config.checkpoints) or tmp_path)
    assert (position.version, position.ledger_lines, position.duplicates_dropped) == (3, 8, 3 + 0)
    assert metrics.duplicates_dropped.labels("learner")._value.get() == 3  # pyright: ignore
    async with LogReader(kafka) as reader:
        assert len(await reader.read_all(DEAD_LETTERS.name)) == 1

    # what was announced can be fetched, is an ordinary model, and has learnt; the oldest snapshots are gone
    local = await fetch(weights[-1].snapshot, tmp_path / "cache", keep=1)
    trained, base = (AutoModelForCausalLM.from_pretrained(path, dtype="auto") for path in (local, model_directory))
    assert trained.dtype == torch.float32
    assert not torch.equal(trained.lm_head.weight, base.lm_head.weight)
    assert (local / "tokenizer.json").read_text() == (model_directory / "tokenizer.json").read_text()
    assert json.loads((local / "generation_config.json").read_text())["eos_token_id"] == [3, 5]
    assert sorted(path.name for path in config.weights.iterdir()) == ["1.2", "1.3"]


@pytest.mark.parametrize(
    ("max_seconds", "admitted"),
    [
        # no time for a second update
        (1e-6, 6),
        # time, but no batch to spend it on
        (2.0, 3),
    ],
)
async def test_a_run_ends_by_time_as_it_does_by_its_updates(
    kafka: KafkaSettings, tmp_path: Path, model_directory: Path, max_seconds: float, admitted: int
):
    config = learner_config(tmp_path, model_directory, max_seconds=max_seconds, max_updates=100)
    log_id = await read_log_id(kafka)
    await publish(kafka, [trajectory(number, log_id=log_id) for number in range(admitted)])
    await publish(kafka, [Drained(log_id=log_id, admitted=admitted, reason="run_ended", incarnation=1)])

    await run(config, kafka)

    ledger = read_ledger(tmp_path / LEDGER)
    assert check_ledger(ledger, {log_id: range(admitted)}).ok
    assert [line.outcome for line in ledger] == ["trained"] * 2 + ["run_ended"] * (admitted - 2)
    last = (await published(kafka))[1][-1]
    assert (last.version, last.closing, last.finished) == (1, True, True)

    # the time is the run's, not a life's: a resume has none left
    if max_seconds < 1:
        await publish(kafka, [trajectory(admitted, log_id=log_id)])
        await publish(kafka, [Drained(log_id=log_id, admitted=admitted + 1, reason="run_ended", incarnation=2)])
        await run(config, kafka)
        assert read_ledger(tmp_path / LEDGER)[-1].outcome == "run_ended"


async def test_killed_and_resumed_it_trains_on_every_group_once(
    kafka: KafkaSettings, tmp_path: Path, model_directory: Path
):
    changes: dict[str, Any] = {"max_staleness": 5, "max_updates": 4, "checkpoint_every_updates": 2}
    config = learner_config(tmp_path, model_directory, **changes)
    log_id = await read_log_id(kafka)
    await publish(kafka, [trajectory(number, log_id=log_id) for number in range(6)])
    settings = tmp_path / "settings.json"
    settings.write_text(
        json.dumps(
            {
                "run_directory": str(tmp_path),
                "model_directory": str(model_directory),
                "changes": changes,
                "kafka": {"bootstrap": kafka.bootstrap, "prefix": kafka.prefix},
            }
        )
    )
    with (tmp_path / "learner.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.learner_process", str(settings), stdout=log, stderr=log
        )
    try:
        await version_on_progress(kafka, 3)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert [line.version for line in read_ledger(tmp_path / LEDGER)] == [1, 1, 2, 2, 3, 3]

    more = [trajectory(number, log_id=log_id, version=PolicyVersion(1, 3)) for number in (6, 7)]
    await publish(kafka, [*more, Drained(log_id=log_id, admitted=8, reason="run_ended", incarnation=2)])
    await run(config, kafka)

    ledger = read_ledger(tmp_path / LEDGER)
    assert check_ledger(ledger, {log_id: range(8)}).ok
    assert [(line.admission_number, line.incarnation, line.version) for line in ledger] == [
        (0, 1, 1),
        (1, 1, 1),
        (2, 1, 2),
        (3, 1, 2),
        (4, 2, 3),
        (5, 2, 3),
        (6, 2, 4),
        (7, 2, 4),
    ]
    assert [line["admission_number"] for line in lines(tmp_path / ROLLED_BACK)] == [4, 5]
    weights, progress = await published(kafka)
    assert [(update.incarnation, update.version) for update in weights][4:] == [(2, 2), (2, 3), (2, 4)]
    assert (progress[-1].incarnation, progress[-1].version, progress[-1].finished) == (2, 4, True)


async def test_stopped_it_saves_and_goes_on_with_another_log(
    kafka: KafkaSettings, new_kafka: KafkaSettings, tmp_path: Path, model_directory: Path
):
    config = learner_config(tmp_path, model_directory, checkpoint_every_updates=100)
    first_log = await read_log_id(kafka)
    await publish(kafka, [trajectory(number, log_id=first_log) for number in range(3)])
    stop = asyncio.Event()
    running = asyncio.create_task(run(config, kafka, stop))
    await version_on_progress(kafka, 1)
    stop.set()
    await running
    _, progress = await published(kafka)
    assert (progress[-1].version, progress[-1].finished, progress[-1].ended_low) == (1, False, 2)

    other = KafkaSettings(bootstrap=kafka.bootstrap, prefix=f"other-{kafka.prefix}")
    second_log = await apply_topics(other, partitions=PARTITIONS)
    rest = [
        msgspec.structs.replace(
            trajectory(index, log_id=second_log, version=PolicyVersion(2, 1)), admission_number=number
        )
        for number, index in enumerate(range(2, 6))
    ]
    await publish(other, [*rest, Drained(log_id=second_log, admitted=4, reason="sources_ended")])
    await run(config, other)

    ledger = read_ledger(tmp_path / LEDGER)
    assert check_ledger(ledger, {first_log: range(2), second_log: range(4)}).ok
    assert [line.group_id for line in ledger] == [f"group-{index}" for index in range(6)]
    _, progress = await published(other)
    assert (progress[-1].incarnation, progress[-1].version, progress[-1].finished) == (2, 3, True)
    assert progress[-1].sources["train"].low == 6


async def test_a_log_that_lost_records_is_a_named_error(kafka: KafkaSettings, tmp_path: Path, model_directory: Path):
    config = learner_config(tmp_path, model_directory)
    stop = asyncio.Event()
    stop.set()
    await run(config, kafka, stop)
    checkpoint = newest_checkpoint(config.checkpoints)
    assert checkpoint is not None
    position = load_position(checkpoint)
    position.offsets[0] = 999
    (checkpoint / "position.json").write_bytes(msgspec.json.encode(position))
    with pytest.raises(StoredOffsetOutOfRange, match="999"):
        await run(config, kafka)


async def test_it_stops_when_another_learner_takes_over(kafka: KafkaSettings, tmp_path: Path, model_directory: Path):
    config = learner_config(tmp_path, model_directory)
    running = asyncio.create_task(run(config, kafka))
    await version_on_progress(kafka, 0)
    take_incarnation(config.checkpoints)
    with pytest.raises(Superseded):
        await running
