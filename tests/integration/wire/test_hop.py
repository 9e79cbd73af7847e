"""A hop on a real broker, in both shells: dead letters, versions, floors, rebalances, stored offsets.

Each test runs both shells, at once.
"""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete

from schemas import Event
from schemas.topics import GENERATIONS, REWARDS, ROLLOUTS
from tests.integration.wire.hops import (
    SHELLS,
    Echo,
    Holding,
    commit_as,
    count,
    read_rewards,
    read_topic,
    rollout,
    rollouts,
    run_to_its_end,
    running,
    until,
)
from wire.errors import StoredOffsetOutOfRange, UpgradeFirst
from wire.hop.shell import hop_runner
from wire.kafka.clients import connect, make_admin, make_producer
from wire.kafka.lag import group_lag
from wire.kafka.log_reader import LogReader
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing, Record
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import apply_topics
from wire.metrics import Metrics

Scenario = Callable[[str, KafkaSettings], Awaitable[None]]
"""What is done with one shell on topics of its own."""


async def both(kafka: KafkaSettings, scenario: Scenario) -> None:
    async with asyncio.TaskGroup() as group:
        for shell in SHELLS:
            settings = dataclasses.replace(kafka, prefix=f"{kafka.prefix}{shell}.")
            await apply_topics(settings, partitions=4)
            group.create_task(_run(scenario, shell, settings))


async def _run(scenario: Scenario, shell: str, settings: KafkaSettings) -> None:
    await scenario(shell, settings)


@asynccontextmanager
async def raw_producer(settings: KafkaSettings) -> AsyncGenerator[AIOKafkaProducer]:
    """What a user with kcat is."""
    producer = make_producer(settings, "someone")
    await connect(producer, settings)
    try:
        yield producer
    finally:
        await producer.stop()


async def test_what_cannot_be_handled_is_put_aside_and_what_is_too_new_stops_the_worker(
    new_kafka: KafkaSettings, tmp_path: Path
) -> None:
    junk = {b"\x00\xff not JSON", b'{"type": "rollout", "rollout_id": 3}', b'{"schema_version": 7}'}

    async def scenario(shell: str, kafka: KafkaSettings) -> None:
        topic = kafka.name("rollouts")
        async with raw_producer(kafka) as producer:
            for value in junk:
                await producer.send_and_wait(topic, value, key=b"x")
        async with Publisher(kafka, "rollout") as publisher:
            await publisher.send_all([*rollouts(20), Outgoing("rollouts", "bad", rollout("bad", text="fails"))])
        async with running(shell, Echo(), kafka, tmp_path, fails=UpgradeFirst) as task:

            async def all_done() -> bool:
                return await count(kafka, "rewards") >= 21 and await count(kafka, "dead-letters") >= 4

            await until(all_done, task)
            async with raw_producer(kafka) as producer:
                headers = [("writer", b"rollout")]
                await producer.send_and_wait(topic, b'{"schema_version": 7}', partition=0, headers=headers)
        letters = await read_topic(kafka, "dead-letters")
        kinds = {letter.value: letter.headers["kind"].decode() for letter in letters}
        assert {value: kinds[value] for value in junk} == dict.fromkeys(junk, "malformed") | {
            b'{"schema_version": 7}': "unknown_version"
        }
        [exhausted] = [letter for letter in letters if letter.value not in junk]
        assert exhausted.headers["attempts"] == b"2"
        assert exhausted.headers["reason"] == b"the jail is on fire"
        origins = {(letter.headers["origin-partition"], letter.headers["origin-offset"]) for letter in letters}
        assert len(origins) == 4
        feedback = {reward.context.group_id: reward.feedback for reward in await read_rewards(kafka)}
        assert feedback == {f"g{number}": "ok" for number in range(20)} | {"bad": "the jail is on fire"}
        [lag] = await group_lag(kafka, "dispatch", ["rollouts"])
        assert lag.events == 1, "accepted + dead-lettered = sent; the one that is too new waits for the upgrade"

    await both(new_kafka, scenario)


async def test_a_floor_holds_the_commit_and_a_restart_reads_from_it(new_kafka: KafkaSettings, tmp_path: Path) -> None:
    async def scenario(shell: str, kafka: KafkaSettings) -> None:
        async with Publisher(kafka, "rollout") as publisher:
            await publisher.send_all(
                [Outgoing("rollouts", f"g{number}", rollout(f"g{number}"), partition=0) for number in range(10)]
            )

        async def committed() -> int:
            [lag] = await group_lag(kafka, "dispatch", ["rollouts"])
            return lag.committed

        hop = Holding()
        hop.held = 4
        async with running(shell, hop, kafka, tmp_path) as task:

            async def all_handled_and_some_committed() -> bool:
                return len(hop.seen) == 10 and await committed() > 0

            await until(all_handled_and_some_committed, task)
            await asyncio.sleep(1.5)  # another commit interval: it must stay
            assert await committed() == 4
        assert await committed() == 4, "the last commit at the stop respects it too"
        again = Holding()
        async with running(shell, again, kafka, tmp_path) as task:

            async def up_to_the_end() -> bool:
                return await committed() == 10

            await until(up_to_the_end, task)
        assert again.seen == [(0, offset) for offset in range(4, 10)]

    await both(new_kafka, scenario)


async def test_two_members_share_and_a_rebalance_loses_nothing(new_kafka: KafkaSettings, tmp_path: Path) -> None:
    class Joining(Echo):
        topics = (GENERATIONS, ROLLOUTS, REWARDS)  # read together, as collect does
        name = "collect"

        async def handle(self, event: Event, record: Record) -> Sequence[Outgoing]:
            await asyncio.sleep(0.02)
            return []

    async def scenario(shell: str, kafka: KafkaSettings) -> None:
        first, second = Joining(), Joining()
        async with running(shell, first, kafka, tmp_path, "worker-0") as one:

            async def first_has_all() -> bool:
                return len(first.owned) == 12

            await until(first_has_all, one)
            async with Publisher(kafka, "rollout") as publisher:
                await publisher.send_all(rollouts(200))
            async with running(shell, second, kafka, tmp_path, "worker-1") as two:

                async def shared() -> bool:
                    return len(first.owned) == len(second.owned) == 6

                await until(shared, two)
                for hop in (first, second):
                    numbers = {number for _, number in hop.owned}
                    assert hop.owned == {(topic.name, number) for topic in hop.topics for number in numbers}
                async with Publisher(kafka, "rollout") as publisher:
                    await publisher.send_all(rollouts(200))

                async def all_committed() -> bool:
                    lags = await group_lag(kafka, "collect", ["rollouts"])
                    return lags[0].events == 0

                await until(all_committed, one)

    await both(new_kafka, scenario)


async def test_the_markers_of_transactions_are_committed_over(
    new_kafka: KafkaSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker after the last event is no lag, also to those who ask the broker alone."""
    monkeypatch.setattr("wire.hop.shell.WATCH_SECONDS", 0.3)

    async def scenario(shell: str, kafka: KafkaSettings) -> None:
        async with Publisher(kafka, "rollout", transactional_id=kafka.name("test")) as publisher:
            for out in rollouts(3):
                await publisher.send(out)  # none is a gap
            hop = Echo()
            async with running(shell, hop, kafka, tmp_path) as task:

                async def at_the_end() -> bool:
                    [lag] = await group_lag(kafka, "dispatch", ["rollouts"])
                    return lag.committed == lag.end == await count(kafka, "rollouts")

                await until(at_the_end, task)
                await publisher.send(rollouts(1)[0])
                await until(at_the_end, task)
        assert len(hop.seen) == 4

    await both(new_kafka, scenario)


async def test_what_retention_took_from_under_a_worker_stops_it(kafka: KafkaSettings, tmp_path: Path) -> None:
    async with Publisher(kafka, "rollout") as publisher:
        await publisher.send_all([Outgoing("rollouts", "g", rollout("g"), partition=0) for _ in range(10)])
    place = TopicPartition(kafka.name("rollouts"), 0)
    admin = make_admin(kafka)
    await connect(admin, kafka)
    await admin.delete_records({place: RecordsToDelete(before_offset=6)})
    await admin.close()
    async with hop_runner(Echo(), kafka, Metrics(), tmp_path) as runner, LogReader(kafka) as reader:
        runner.assigned({("rollouts", 0): 3})  # 3, 4 and 5 had not been read
        lease = runner.lease("rollouts", 0)
        assert lease is not None
        [record] = await reader.read("rollouts", 0, [6])
        await runner.deliver(lease, record)
        assert isinstance(runner.failure, StoredOffsetOutOfRange)
        assert "after 2 comes 6" in str(runner.failure)


async def test_a_stored_offset_of_another_log_stops_the_worker(new_kafka: KafkaSettings, tmp_path: Path) -> None:
    async def scenario(shell: str, kafka: KafkaSettings) -> None:
        async with Publisher(kafka, "rollout") as publisher:
            await publisher.send_all(rollouts(8))
        await commit_as(kafka, "dispatch", {("rollouts", 2): 1000})
        hop = Echo()
        with pytest.raises(StoredOffsetOutOfRange, match=r"offset 1000 of .*rollouts \[2\]"):
            await run_to_its_end(shell, hop, kafka, tmp_path)
        assert hop.seen == []

    await both(new_kafka, scenario)
