"""The scheduler on a real broker: what it admits, what it commits, and what a second one does."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from schemas import Cancel, CancelRequest, Drained, Generation, Pause, Purpose, Resume, SourceEnd
from schemas.topics import PROMPTS_PREFIX
from streams.scheduler.scheduler import SchedulerConfig, run_scheduler
from tests.integration.streams.events import (
    RUN,
    Window,
    eventually,
    generation,
    living,
    progress,
    prompt,
    weights,
    window,
    writer,
)
from wire.errors import Fenced, UpgradeFirst
from wire.kafka.clients import make_producer
from wire.kafka.committed_offsets import CommittedOffsets
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import declare_domain, read_log_id
from wire.metrics import Metrics


def config(directory: Path, **rest: int | frozenset[tuple[str, str]]) -> SchedulerConfig:
    values = {"batch_groups": 2, "max_staleness": 1, "max_open_evaluations": 2} | rest
    return SchedulerConfig(run_id=RUN, run_directory=directory, **values)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def scheduler(kafka: KafkaSettings, settings: SchedulerConfig) -> AsyncGenerator[Metrics]:
    metrics = Metrics()
    async with living(lambda stop: run_scheduler(settings, kafka, metrics, stop)):
        yield metrics


def admitted(log: Window) -> list[str]:
    """Prompt ids of the train groups, in the order of their numbers."""
    groups = [event for event in log.of(Generation) if event.purpose == Purpose.TRAIN]
    return [event.prompt_id for event in sorted(groups, key=lambda event: event.admission_number)]


def count(number: int) -> Callable[[Window], bool]:
    return lambda log: len(admitted(log)) >= number


async def is_committed(offsets: CommittedOffsets, topic: str, offset: int) -> bool:
    return await offsets.read((topic, 0)) == offset


async def test_admits_within_the_bound_and_goes_on_with_progress(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    async with scheduler(kafka, config(tmp_path)), writer(kafka) as user, window(kafka, "generations") as log:
        await user.send_all([prompt(f"p{i}") for i in range(7)])
        await log.quiet()
        assert admitted(log) == []  # the learner has not said yet what has ended
        await user.send(progress(log_id))
        await log.until(count(4))
        await log.quiet()
        assert admitted(log) == ["p0", "p1", "p2", "p3"]
        await user.send(progress(log_id, 2))
        await log.until(count(6))
        await log.quiet()
        numbers = sorted(event.admission_number for event in log.of(Generation))
        assert numbers == list(range(6))


async def test_a_restart_admits_no_identity_again(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    async with writer(kafka) as user, window(kafka, "generations") as log:
        await user.send_all([progress(log_id), *(prompt(f"p{i}") for i in range(6))])
        async with scheduler(kafka, config(tmp_path)):
            await log.until(count(4))
        await user.send_all([prompt("p1"), prompt("p6")])
        await user.send(progress(log_id, 4, version=1))
        async with scheduler(kafka, config(tmp_path)):
            await log.until(count(7))
            await log.quiet()
        assert admitted(log) == [f"p{i}" for i in range(7)]


async def test_a_lost_commit_admits_nothing_twice(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    async with writer(kafka) as user, window(kafka, "generations") as log:
        await user.send_all([progress(log_id), *(prompt(f"p{i}") for i in range(3))])
        async with CommittedOffsets(kafka, "scheduler") as offsets:
            async with scheduler(kafka, config(tmp_path)):
                await log.until(count(3))
                await eventually(lambda: is_committed(offsets, "prompts.a", 3))
            await offsets.commit({("prompts.a", 0): 0})
        async with scheduler(kafka, config(tmp_path)) as metrics:
            await user.send(prompt("p3"))
            await log.until(count(4))
            assert metrics.registry.get_sample_value("headwater_duplicates_dropped_total", {"hop": "scheduler"}) == 3
        assert admitted(log) == ["p0", "p1", "p2", "p3"]


async def test_a_standby_takes_over(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    async with writer(kafka) as user, window(kafka, "generations") as log:
        await user.send(progress(log_id))
        async with scheduler(kafka, config(tmp_path)):
            await user.send(prompt("p0"))
            await log.until(count(1))
            second = scheduler(kafka, config(tmp_path))
            await second.__aenter__()
            await user.send(prompt("p1"))
            await log.until(count(2))
        await user.send(prompt("p2"))
        await log.until(count(3))
        await second.__aexit__(None, None, None)
        assert admitted(log) == ["p0", "p1", "p2"]


async def test_a_new_domain_is_found(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    async with scheduler(kafka, config(tmp_path)), writer(kafka) as user, window(kafka, "generations") as log:
        await user.send_all([progress(log_id), prompt("p0")])
        await log.until(count(1))
        await declare_domain(kafka, "late")
        await user.send(prompt("p1", domain="late"))
        await log.until(count(2))
        await user.send(prompt("p2"))
        await log.until(count(3))
        assert admitted(log) == ["p0", "p1", "p2"]


async def test_malformed_prompts_are_put_aside_and_the_stream_goes_on(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    good = prompt("good")
    bad = {
        b"{not json": "malformed",
        b'{"domain": "a", "messages": [], "grader": {"kind": "exact", "answer": "1"}}': "malformed",
        b'{"domain": "a", "mesages": [], "grader": {"kind": "exact", "answer": "1"}}': "malformed",
        b'{"schema_version": 99, "domain": "a"}': "unknown_version",
        b'{"domain": "b", "token_ids": [1], "grader": {"kind": "exact", "answer": "1"}}': "rejected",
    }
    producer = make_producer(kafka, "kcat")
    await producer.start()
    async with scheduler(kafka, config(tmp_path)), writer(kafka) as user:
        for value in bad:
            await producer.send_and_wait(kafka.name("prompts.a"), value)
        await producer.send_and_wait(kafka.name("control"), b'{"type": "pause", "domian": "a"}')
        await user.send_all([progress(log_id), good])
        async with window(kafka, "generations") as log, window(kafka, "dead-letters") as letters:
            await log.until(count(1))
            assert admitted(log) == ["good"]
            await letters.until(lambda letters: len(letters.records) >= len(bad) + 1)
            await letters.quiet()  # the evaluation lane reads them too, and says nothing
            found = {record.value: record.headers for record in letters.records}
            assert {value: found[value]["kind"].decode() for value in bad} == bad
            assert b"did you mean `messages`" in found[list(bad)[2]]["reason"]
            assert b"prompts.b" in found[list(bad)[4]]["reason"]
            assert len(letters.records) == len(bad) + 1
        async with CommittedOffsets(kafka, "scheduler") as offsets:
            await eventually(lambda: is_committed(offsets, "prompts.a", len(bad) + 1))
            await eventually(lambda: is_committed(offsets, "control", 1))
    await producer.stop()


async def test_pause_resume_and_cancel(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    await declare_domain(kafka, "b")
    async with writer(kafka) as user, window(kafka, "generations") as log:
        async with scheduler(kafka, config(tmp_path)):
            await user.send_all([progress(log_id), Outgoing("control", RUN, Pause(run_id=RUN, domain="a"))])
            async with CommittedOffsets(kafka, "scheduler") as offsets:  # topics are not ordered among each other
                await eventually(lambda: is_committed(offsets, "control", 1))
            await user.send_all([prompt("p0"), prompt("p1", domain="b")])
            await log.until(count(1))
            await log.quiet()
            assert admitted(log) == ["p1"]
        async with scheduler(kafka, config(tmp_path)):  # the pause outlives the scheduler
            await user.send(prompt("p2", domain="b"))
            await log.until(count(2))
            assert admitted(log) == ["p1", "p2"]
            await user.send(Outgoing("control", RUN, Resume(run_id=RUN, domain="a")))
            await log.until(count(3))
            await user.send(Outgoing("control", RUN, CancelRequest(run_id=RUN, prompt_id="p1")))
            await log.until(lambda log: bool(log.of(Cancel)))
        groups = {event.prompt_id: event.group_id for event in log.of(Generation)}
        assert [(event.group_id, event.reason) for event in log.of(Cancel)] == [(groups["p1"], "cancelled")]


async def test_closing_cancels_what_is_open_and_drains_every_partition(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    async with scheduler(kafka, config(tmp_path)), writer(kafka) as user, window(kafka, "generations") as log:
        await user.send_all([progress(log_id), *(prompt(f"p{i}") for i in range(6))])
        await log.until(count(4))
        await user.send(progress(log_id, 2, version=1, closing=True))
        await log.until(lambda log: len(log.of(Drained)) >= 4)
        await log.quiet()
        cancels = sorted(event.admission_number for event in log.of(Cancel))
        assert cancels == [2, 3]
        assert len(admitted(log)) == 4
        drained = [record for record in log.records if isinstance(log.event(record), Drained)]
        assert sorted(record.partition for record in drained) == [0, 1, 2, 3]
        assert {(event.admitted, event.reason) for event in log.of(Drained)} == {(4, "run_ended")}


async def test_sources_that_have_ended_drain_the_run(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    settings = config(tmp_path, sources=frozenset({("functions", "a")}))
    async with scheduler(kafka, settings), writer(kafka) as user, window(kafka, "generations") as log:
        end = SourceEnd(source="functions", domain="a", count=2)
        await user.send_all([progress(log_id), prompt("p0"), prompt("p1"), Outgoing(f"{PROMPTS_PREFIX}a", "end", end)])
        await log.until(lambda log: len(log.of(Drained)) >= 4)
        assert {(event.admitted, event.reason) for event in log.of(Drained)} == {(2, "sources_ended")}


async def test_evaluation_groups_have_their_own_bound_and_name_the_newest_version(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    def evaluations(log: Window) -> list[Generation]:
        return [event for event in log.of(Generation) if event.purpose == Purpose.EVALUATE]

    async with scheduler(kafka, config(tmp_path)), writer(kafka) as user, window(kafka, "generations") as log:
        await user.send_all([prompt(f"e{i}", purpose=Purpose.EVALUATE) for i in range(3)])
        await log.quiet()
        assert evaluations(log) == []  # there is nothing to evaluate yet
        await user.send(weights(tmp_path, 1, 3))
        await log.until(lambda log: len(evaluations(log)) >= 2)
        await log.quiet()
        assert [(event.prompt_id, event.policy_version) for event in evaluations(log)] == [
            ("e0", (1, 3)),
            ("e1", (1, 3)),
        ]


async def test_a_newer_release_stops_it(kafka: KafkaSettings, tmp_path: Path) -> None:
    metrics, stop = Metrics(), asyncio.Event()
    async with Publisher(kafka, "scheduler") as role:
        await role.send(generation("g"))
    producer = make_producer(kafka, "newer")
    await producer.start()
    await producer.send_and_wait(
        kafka.name("generations"), b'{"type": "drained", "schema_version": 2}', headers=[("writer", b"scheduler")]
    )
    await producer.stop()
    with pytest.raises(UpgradeFirst, match="upgrade me first"):
        await run_scheduler(config(tmp_path), kafka, metrics, stop)


async def test_a_scheduler_on_another_machine_fences_the_older(kafka: KafkaSettings, tmp_path: Path) -> None:
    log_id = await read_log_id(kafka)
    async with writer(kafka) as user, window(kafka, "generations") as log:
        await user.send_all([progress(log_id), prompt("p0")])
        here, there = (config(tmp_path / name, batch_groups=100) for name in ("here", "there"))
        older = asyncio.create_task(run_scheduler(here, kafka, Metrics(), asyncio.Event()))
        await log.until(count(1))
        async with scheduler(kafka, there):
            sent = 1
            while not older.done():  # it notices when it next publishes
                await user.send(prompt(f"p{sent}"))
                sent += 1
                await asyncio.wait([older], timeout=0.5)
            with pytest.raises(Fenced, match="only one may run"):
                await older
            await log.until(count(sent))
            await log.quiet()
    assert admitted(log) == [f"p{number}" for number in range(sent)]
    assert sorted(event.admission_number for event in log.of(Generation)) == list(range(sent))


async def test_with_too_little_left_on_the_brokers_disk_nothing_is_admitted(
    kafka: KafkaSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log_id = await read_log_id(kafka)
    async with writer(kafka) as user, window(kafka, "generations") as log:
        await user.send_all([progress(log_id), prompt("p0")])
        async with scheduler(kafka, config(tmp_path, min_free_bytes=1 << 60)):
            async with asyncio.timeout(20):
                while "broker.min_free_bytes" not in caplog.text:  # noqa: ASYNC110 - a log line wakes nobody
                    await asyncio.sleep(0.05)
            await log.quiet()
            assert admitted(log) == []
        async with scheduler(kafka, config(tmp_path)):
            await log.until(count(1))
