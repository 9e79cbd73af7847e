"""One event through a hop: what is published, what becomes a dead letter, what stops the worker."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiokafka.errors import KafkaConnectionError

from schemas import Event, MalformedEvent, Rollout
from tests.unit.wire.doubles import MemoryPublisher, ToldHop, marks_in, record, reward, rollout
from wire.errors import Retryable, UpgradeFirst
from wire.hop import processor as processor_module
from wire.hop.inflight import Journal
from wire.hop.processor import Processor
from wire.kafka.dead_letters import DeadLetterKind
from wire.kafka.records import Outgoing, Record
from wire.metrics import Metrics


@pytest.fixture
def publisher() -> MemoryPublisher:
    return MemoryPublisher()


@pytest.fixture(autouse=True)
def _no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(processor_module, "FIRST_BACKOFF_SECONDS", 0.0)


def make(hop: ToldHop, publisher: MemoryPublisher, tmp_path: Path) -> Processor:
    return Processor(hop, publisher, Journal(tmp_path), Metrics())


def feedback(publisher: MemoryPublisher) -> list[str]:
    return [getattr(out.event, "feedback") for out in publisher.sent]  # noqa: B009 - a Reward, seen as an Event


async def test_what_follows_is_published(publisher: MemoryPublisher, tmp_path: Path) -> None:
    await make(ToldHop(), publisher, tmp_path).process(record(rollout("g")))
    assert feedback(publisher) == ["handled"]
    assert publisher.letters == []
    assert marks_in(tmp_path) == 0


async def test_what_cannot_be_encoded_ends_no_worker(publisher: MemoryPublisher, tmp_path: Path) -> None:
    class Surrogate(ToldHop):
        async def handle(self, event: Event, record: Record) -> Sequence[Outgoing]:
            assert isinstance(event, Rollout)
            return [reward(event, "half a character: \ud800")]

    await make(Surrogate(), publisher, tmp_path).process(record(rollout("g")))
    assert [letter[3] for letter in publisher.letters] == [DeadLetterKind.REJECTED]
    assert feedback(publisher) == ["exhausted: " + publisher.letters[0][1]]


async def test_time_with_several_events_in_hand_counts_once(publisher: MemoryPublisher, tmp_path: Path) -> None:
    hop, metrics = ToldHop(lambda _: asyncio.sleep(0.05), concurrency=4), Metrics()
    worker = Processor(hop, publisher, Journal(tmp_path), metrics)
    await asyncio.gather(*(worker.process(record(rollout(f"g{n}"), offset=n)) for n in range(4)))
    busy = metrics.registry.get_sample_value("headwater_busy_seconds_total", {"hop": "dispatch"}) or 0.0
    handled = metrics.registry.get_sample_value("headwater_handler_seconds_sum", {"hop": "dispatch"}) or 0.0
    assert 0.05 <= busy < handled / 2


@pytest.mark.parametrize("value", [b"", b"{", b"\xff\xfe", b"[]", b'{"type": "rollout"}', b'{"type": "prompt"}'])
async def test_malformed_bytes_become_a_dead_letter(publisher: MemoryPublisher, tmp_path: Path, value: bytes) -> None:
    await make(ToldHop(), publisher, tmp_path).process(record(value))
    assert [(letter[0].value, letter[3]) for letter in publisher.letters] == [(value, DeadLetterKind.MALFORMED)]
    assert publisher.sent == []


async def test_only_the_first_reader_of_a_topic_writes_dead_letters(publisher: MemoryPublisher, tmp_path: Path) -> None:
    hop = ToldHop()
    hop.name = "collect"
    metrics = Metrics()
    await Processor(hop, publisher, Journal(tmp_path), metrics).process(record(b"{"))
    assert publisher.letters == []
    assert (
        metrics.registry.get_sample_value("headwater_skipped_events_total", {"hop": "collect", "reason": "malformed"})
        == 1
    )


async def test_an_unknown_version_of_a_user_is_a_dead_letter(publisher: MemoryPublisher, tmp_path: Path) -> None:
    await make(ToldHop(), publisher, tmp_path).process(record(b'{"schema_version": 2}', writer="client"))
    assert publisher.letters[0][3] == DeadLetterKind.UNKNOWN_VERSION


async def test_an_unknown_version_of_a_role_stops_the_worker(publisher: MemoryPublisher, tmp_path: Path) -> None:
    with pytest.raises(UpgradeFirst, match="upgrade me first: rollout wrote to rollouts"):
        await make(ToldHop(), publisher, tmp_path).process(record(b'{"schema_version": 2}', writer="rollout"))
    assert publisher.letters == []


async def test_a_fault_that_passes_is_tried_again(publisher: MemoryPublisher, tmp_path: Path) -> None:
    tries = 0

    async def fail_twice(event: Rollout) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Retryable("no jail")

    await make(ToldHop(fail_twice), publisher, tmp_path).process(record(rollout("g")))
    assert tries == 3
    assert feedback(publisher) == ["handled"]
    assert publisher.letters == []


@pytest.mark.parametrize("error", [Retryable("no jail"), ZeroDivisionError("no jail")])
async def test_a_fault_that_stays_is_dead_lettered_and_sent_on(
    publisher: MemoryPublisher, tmp_path: Path, error: Exception
) -> None:
    async def fail(event: Rollout) -> None:
        raise error

    hop = ToldHop(fail)
    await make(hop, publisher, tmp_path).process(record(rollout("g")))
    [(_, reason, attempts, kind)] = publisher.letters
    assert (attempts, kind) == (hop.attempts, DeadLetterKind.EXHAUSTED)
    assert "no jail" in reason
    assert feedback(publisher) == [f"exhausted: {reason}"]


async def test_an_event_that_asks_for_what_cannot_be_is_not_tried_again(
    publisher: MemoryPublisher, tmp_path: Path
) -> None:
    async def refuse(event: Rollout) -> None:
        raise MalformedEvent("no such language")

    await make(ToldHop(refuse), publisher, tmp_path).process(record(rollout("g")))
    assert [(letter[2], letter[3]) for letter in publisher.letters] == [(1, DeadLetterKind.REJECTED)]


async def test_a_broker_that_is_gone_is_no_fault_of_the_event(publisher: MemoryPublisher, tmp_path: Path) -> None:
    async def disconnect(event: Rollout) -> None:
        raise KafkaConnectionError

    with pytest.raises(KafkaConnectionError):
        await make(ToldHop(disconnect), publisher, tmp_path).process(record(rollout("g")))
    assert publisher.letters == []
    assert marks_in(tmp_path) == 0


async def test_an_event_that_killed_two_workers_is_poisoned(publisher: MemoryPublisher, tmp_path: Path) -> None:
    event = record(rollout("g"))
    for _ in range(2):
        Journal(tmp_path).begin(event)
    hop = ToldHop()
    await make(hop, publisher, tmp_path).process(event)
    assert hop.handled == []
    assert feedback(publisher) == ["poisoned"]
    assert publisher.letters[0][3] == DeadLetterKind.POISONED


async def test_a_result_above_the_limit_is_dead_lettered_and_the_failure_sent_on(
    publisher: MemoryPublisher, tmp_path: Path
) -> None:
    class Large(ToldHop):
        async def handle(self, event: Event, record: Record) -> Sequence[Outgoing]:
            assert isinstance(event, Rollout)
            return [reward(event, "x" * (2 << 20))]

    await make(Large(), publisher, tmp_path).process(record(rollout("g")))
    assert publisher.letters[0][3] == DeadLetterKind.TOO_LARGE
    assert feedback(publisher)[0].startswith("exhausted: reward")
