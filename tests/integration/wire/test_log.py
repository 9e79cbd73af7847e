"""Onto the log and off it again, by offset: publisher, reader, tail, topics and lag."""

import asyncio
import dataclasses

import pytest
from aiokafka import AIOKafkaProducer

from schemas import EventTooLarge, Progress
from tests.conftest import PARTITIONS
from tests.integration.wire.hops import commit_as, count, rollout, rollouts
from wire.errors import BrokerUnreachable, Fenced, LogUnidentified, StoredOffsetOutOfRange, TopicRefused
from wire.kafka.clients import connect, make_producer, partition_of
from wire.kafka.lag import group_lag
from wire.kafka.log_reader import LogReader
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.kafka.topics import apply_topics, declare_domain, existing_topics, read_log_id


def progress(version: int) -> Outgoing:
    return Outgoing("progress", f"run-{version}", Progress(log_id="l", incarnation=1, version=version))


async def test_what_is_sent_is_where_the_broker_says_with_its_writer(kafka: KafkaSettings) -> None:
    async with Publisher(kafka, "rollout") as publisher, LogReader(kafka) as reader:
        places = await publisher.send_all(rollouts(30))
        for out, place in zip(rollouts(30), places, strict=True):
            assert place.partition == partition_of(out.key, PARTITIONS)
            [record] = await reader.read("rollouts", place.partition, [place.offset])
            assert (record.topic, record.key, record.writer) == ("rollouts", out.key, "rollout")


async def test_an_event_above_its_limit_is_not_sent(kafka: KafkaSettings) -> None:
    async with Publisher(kafka, "rollout") as publisher:
        with pytest.raises(EventTooLarge):
            await publisher.send_all([*rollouts(1), Outgoing("rollouts", "g", rollout("g", text="x" * (17 << 20)))])
    assert await count(kafka, "rollouts") == 0


async def test_an_event_at_its_limit_goes_through(kafka: KafkaSettings) -> None:
    text = "".join(chr(97 + number % 23) for number in range(15 << 20))
    async with Publisher(kafka, "rollout") as publisher, LogReader(kafka) as reader:
        place = await publisher.send(Outgoing("rollouts", "g", rollout("g", text=text)))
        [record] = await reader.read("rollouts", place.partition, [place.offset])
        assert len(record.value) > 15 << 20


async def test_records_are_read_in_the_order_asked_for(kafka: KafkaSettings) -> None:
    async with Publisher(kafka, "learner") as publisher, LogReader(kafka) as reader:
        places = await publisher.send_all([progress(version) for version in range(300)])
        first = places[0].offset
        wanted = [first + number for number in (7, 250, 8, 299, 0)]
        assert [record.offset for record in await reader.read("progress", 0, wanted)] == wanted
        assert await reader.read("progress", 0, []) == []


async def test_the_end_is_right_though_the_last_batch_has_many_records(kafka: KafkaSettings) -> None:
    async with Publisher(kafka, "learner") as publisher, LogReader(kafka) as reader:
        places = await publisher.send_all([progress(version) for version in range(500)])
        assert await reader.end_offset("progress", 0) == places[-1].offset + 1
        assert await reader.begin_offset("progress", 0) == 0
        scanned = [record.offset async for record in reader.scan("progress", 0, places[100].offset)]
        assert scanned == [place.offset for place in places[100:]]
        some = [record async for record in reader.scan("progress", 0, places[0].offset, places[10].offset)]
        assert len(some) == 10


async def test_an_offset_outside_the_log_is_a_named_error(kafka: KafkaSettings) -> None:
    async with Publisher(kafka, "learner") as publisher, LogReader(kafka) as reader:
        last = (await publisher.send(progress(1))).offset
        with pytest.raises(StoredOffsetOutOfRange, match="no record at offset"):
            await reader.read("progress", 0, [last + 1])
        with pytest.raises(StoredOffsetOutOfRange):
            await reader.read("progress", 0, [10_000])
        with pytest.raises(StoredOffsetOutOfRange, match="outside what the log holds"):
            _ = [record async for record in reader.scan("progress", 0, last + 2)]
        assert [record async for record in reader.scan("progress", 0, last + 1)] == []
        # the reader is none the worse for it
        assert len(await reader.read("progress", 0, [last])) == 1


async def test_a_tail_follows_several_partitions_and_can_pause_one(kafka: KafkaSettings) -> None:
    async with Publisher(kafka, "rollout") as publisher:
        places = await publisher.send_all(rollouts(40))
        starts = {("rollouts", number): 0 for number in range(PARTITIONS)}
        async with Tail(kafka, starts) as tail:
            tail.pause("rollouts", 1)
            seen: list[int] = []
            async with asyncio.timeout(20):
                while len(seen) < sum(place.partition != 1 for place in places):
                    seen += [record.partition for record in await tail.poll()]
                assert 1 not in seen
                tail.resume("rollouts", 1)
                while len(seen) < len(places):
                    seen += [record.partition for record in await tail.poll()]
            ends = [await tail.position("rollouts", number) for number in range(PARTITIONS)]
            assert sum(ends) == 40


async def test_topics_are_declared_once_with_one_identity(new_kafka: KafkaSettings) -> None:
    with pytest.raises(LogUnidentified, match="topics apply"):
        await read_log_id(new_kafka)
    assert await existing_topics(new_kafka) == {}
    ids = await asyncio.gather(*(apply_topics(new_kafka, partitions=PARTITIONS, domains=["sums"]) for _ in range(3)))
    assert len(set(ids)) == 1
    assert await apply_topics(new_kafka, partitions=PARTITIONS) == ids[0] == await read_log_id(new_kafka)
    await declare_domain(new_kafka, "strings")
    topics = await existing_topics(new_kafka)
    assert topics["rollouts"] == PARTITIONS
    assert topics["prompts.sums"] == topics["prompts.strings"] == topics["progress"] == 1
    with pytest.raises(TopicRefused, match=f"has {PARTITIONS} partitions, not {PARTITIONS + 1}"):
        await apply_topics(new_kafka, partitions=PARTITIONS + 1)


async def test_lag_counts_what_is_not_committed_and_its_age(kafka: KafkaSettings) -> None:
    async with Publisher(kafka, "rollout") as publisher:
        await publisher.send_all(rollouts(40))
    [all_of_it] = await group_lag(kafka, "dispatch", ["rollouts", "prompts.unknown"])
    assert (all_of_it.events, all_of_it.committed, all_of_it.end) == (40, 0, 40)
    assert 0 < all_of_it.oldest_age_seconds < 60
    async with LogReader(kafka) as reader:
        ends = {("rollouts", number): await reader.end_offset("rollouts", number) for number in range(PARTITIONS)}
    await commit_as(kafka, "dispatch", ends)
    [nothing] = await group_lag(kafka, "dispatch", ["rollouts"])
    assert (nothing.events, nothing.committed, nothing.oldest_age_seconds) == (0, 40, 0.0)


async def test_no_broker_is_one_clear_line() -> None:
    settings = KafkaSettings(bootstrap="127.0.0.1:1")
    with pytest.raises(BrokerUnreachable, match=r"no Kafka broker answers at 127\.0\.0\.1:1 .*--bootstrap"):
        async with Publisher(settings, "rollout"):
            pass
    with pytest.raises(BrokerUnreachable):
        await read_log_id(settings)


async def test_a_second_publisher_with_the_same_id_fences_the_first(kafka: KafkaSettings) -> None:
    async with Publisher(kafka, "scheduler", transactional_id="scheduler") as first:
        await first.send_all(rollouts(4))
        async with Publisher(kafka, "scheduler", transactional_id="scheduler") as second:
            await second.send_all(rollouts(4))
            with pytest.raises(Fenced, match="another scheduler has taken over"):
                await first.send_all(rollouts(4))
    async with LogReader(kafka) as reader:
        assert len(await reader.read_all("rollouts")) == 8


async def test_markers_of_transactions_are_no_lag(kafka: KafkaSettings) -> None:
    async with Publisher(kafka, "rollout", transactional_id=kafka.name("test")) as publisher:
        sent = [Outgoing("rollouts", f"g{number}", rollout(f"g{number}"), partition=0) for number in range(3)]
        for out in sent:
            await publisher.send(out)  # offsets 0, 2 and 4; a marker after each
        await commit_as(kafka, "dispatch", {("rollouts", 0): 5})
        [lag] = await group_lag(kafka, "dispatch", ["rollouts"])
        assert (lag.committed, lag.end, lag.events, lag.oldest_age_seconds) == (5, 6, 0, 0.0)
        await publisher.send(sent[0])
        [lag] = await group_lag(kafka, "dispatch", ["rollouts"])
        assert lag.events >= 1
        assert lag.oldest_age_seconds > 0


async def test_what_is_not_committed_is_not_read(kafka: KafkaSettings) -> None:
    producer: AIOKafkaProducer = make_producer(kafka, "test", transactional_id="test-open")
    await connect(producer, kafka)
    await producer.begin_transaction()
    await producer.send_and_wait(kafka.name("rollouts"), b"open", partition=0)
    async with LogReader(kafka) as reader:
        assert await reader.read_all("rollouts") == []
        assert await reader.end_offset("rollouts", 0) == 0
        await producer.abort_transaction()
        await producer.stop()
        assert await reader.read_all("rollouts") == []
        with pytest.raises(StoredOffsetOutOfRange):
            await reader.read("rollouts", 0, [0])


async def test_the_limits_of_an_existing_topic_are_checked(kafka: KafkaSettings) -> None:
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

    from wire.kafka.clients import make_admin

    admin = make_admin(kafka)
    await connect(admin, kafka)
    resource = ConfigResource(ConfigResourceType.TOPIC, kafka.name("rollouts"), {"retention.ms": "1000"})
    await admin.alter_configs([resource])
    await asyncio.sleep(2)  # the broker answers before it has taken it over
    await admin.close()
    with pytest.raises(TopicRefused, match=r"retention\.ms=1000, but the contract says"):
        await apply_topics(kafka, partitions=PARTITIONS)
    await apply_topics(dataclasses.replace(kafka, prefix=kafka.prefix + "other."), partitions=PARTITIONS)
