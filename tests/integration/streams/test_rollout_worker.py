"""The rollout worker on a real broker, with recorded answers: what it samples, when, and with which weights."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from schemas import Cancel, PolicyVersion, Rollout, Unscorable, UnscorableReason
from schemas.tokens import unpack_token_ids
from streams.config import EngineConfig
from streams.rollout.engines.base import Engine, EngineError
from streams.rollout.engines.recorded import RecordedEngine
from streams.rollout.worker import EngineFailed, EngineRefused, RolloutConfig, run_rollout_worker, sample_with
from tests.integration.streams.events import (
    Window,
    eventually,
    generation,
    living,
    run_hop_alone,
    weights,
    window,
    writer,
)
from wire.kafka.records import Outgoing
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics

ANSWERS = ["yes", "no", "perhaps", "never"]


def config(directory: Path) -> RolloutConfig:
    answers = directory / "answers.jsonl"
    answers.write_text(json.dumps({"prompt": None, "answers": ANSWERS}))
    return RolloutConfig(
        name="rollout-0",
        run_directory=directory,
        engine=EngineConfig(kind="recorded", max_batch=8, recorded_answers=answers),
        model_directory=None,
        seed=0,
    )


def engine(directory: Path, delay_seconds: float, **rest: int) -> RecordedEngine:
    file = config(directory).engine.recorded_answers
    assert file is not None
    return RecordedEngine(file, delay_seconds=delay_seconds, **rest)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the consumer group: see `run_hop_alone`."""
    monkeypatch.setattr("streams.rollout.worker.run_consumer_hop", run_hop_alone)


@asynccontextmanager
async def worker(kafka: KafkaSettings, directory: Path, engine: Engine | None = None) -> AsyncGenerator[Metrics]:
    metrics, settings = Metrics(), config(directory)

    async def live(stop: asyncio.Event) -> None:
        if engine is None:
            await run_rollout_worker(settings, kafka, metrics, stop)
        else:
            await sample_with(engine, settings, kafka, metrics, stop)

    async with living(live):
        yield metrics


def found(log: Window, group: str) -> dict[int, Rollout]:
    """The first rollout of each index of a group."""
    first: dict[int, Rollout] = {}
    for event in log.of(Rollout):
        if event.group_id == group:
            first.setdefault(event.sample_index, event)
    return first


async def loaded(metrics: Metrics, version: int) -> bool:
    life = metrics.registry.get_sample_value("headwater_weights_incarnation")
    return bool(life) and metrics.registry.get_sample_value("headwater_weights_version") == version


async def refused(metrics: Metrics) -> bool:
    return bool(metrics.registry.get_sample_value("headwater_weights_refused_total"))


def versions(rollout: Rollout) -> set[PolicyVersion]:
    return {span.policy_version for span in rollout.spans if span.policy_version is not None}


@pytest.mark.usefixtures("alone")
async def test_every_sample_is_a_rollout_with_its_tokens_and_version(kafka: KafkaSettings, tmp_path: Path) -> None:
    async with worker(kafka, tmp_path), writer(kafka, "learner") as role, window(kafka, "rollouts") as log:
        await role.send_all([weights(tmp_path, 2, 5), generation("g", num_samples=3)])
        await log.until(lambda log: len(found(log, "g")) == 3)
        rollouts = found(log, "g")
        assert [rollouts[index].text for index in range(3)] == ANSWERS[:3]
        prompt, answer = rollouts[0].spans
        assert bytes(unpack_token_ids(prompt.token_ids)) == b"hello"
        assert not prompt.trainable
        assert unpack_token_ids(answer.token_ids) == [*b"yes", 0]
        assert answer.trainable
        assert answer.policy_version == (2, 5)
        assert [record.writer for record in log.records] == ["rollout"] * 3


@pytest.mark.usefixtures("alone")
async def test_waits_for_the_first_weights(kafka: KafkaSettings, tmp_path: Path) -> None:
    async with worker(kafka, tmp_path) as metrics, writer(kafka) as role, window(kafka, "rollouts") as log:
        await role.send(generation("g"))
        await log.quiet(2)
        assert log.records == []
        await role.send(weights(tmp_path, 1, 0))
        await log.until(lambda log: len(found(log, "g")) == 2)
        assert metrics.registry.get_sample_value("headwater_weights_incarnation") == 1


@pytest.mark.usefixtures("alone")
async def test_wrong_weights_keep_the_old_version(kafka: KafkaSettings, tmp_path: Path) -> None:
    async with worker(kafka, tmp_path) as metrics, writer(kafka) as role, window(kafka, "rollouts") as log:
        await role.send(weights(tmp_path, 1, 0))
        await eventually(lambda: loaded(metrics, 0))
        broken = weights(tmp_path, 1, 1)
        (tmp_path / "weights-1-1" / "model.safetensors").write_text("other bytes")
        await role.send(broken)
        await eventually(lambda: refused(metrics))
        await role.send(generation("before"))
        await log.until(lambda log: len(found(log, "before")) == 2)
        assert versions(found(log, "before")[0]) == {(1, 0)}
        await role.send(weights(tmp_path, 1, 2))
        await eventually(lambda: loaded(metrics, 2))
        await role.send(generation("after"))
        await log.until(lambda log: len(found(log, "after")) == 2)
        assert versions(found(log, "after")[0]) == {(1, 2)}


@pytest.mark.usefixtures("alone")
async def test_an_evaluation_group_holds_its_version_while_newer_ones_come(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    slow = engine(tmp_path, delay_seconds=0.3)
    async with worker(kafka, tmp_path, slow), writer(kafka) as role, window(kafka, "rollouts") as log:
        await role.send(weights(tmp_path, 1, 0))
        await role.send(generation("e", None, num_samples=6, policy_version=PolicyVersion(1, 0)))
        await log.until(lambda log: len(found(log, "e")) >= 1)
        await role.send_all([weights(tmp_path, 1, 1), generation("g", 0, num_samples=1)])
        await log.until(lambda log: len(found(log, "e")) == 6)
        assert {v for rollout in found(log, "e").values() for v in versions(rollout)} == {(1, 0)}
        assert versions(found(log, "g")[0]) == {(1, 0)}  # honest: what was loaded then
        await role.send(generation("later", 1, num_samples=1))
        await role.send(generation("again", None, policy_version=PolicyVersion(1, 0), num_samples=1))
        await role.send(generation("gone", None, policy_version=PolicyVersion(0, 7), num_samples=1))
        await log.until(lambda log: all(found(log, group) for group in ("later", "again", "gone")))
        assert versions(found(log, "again")[0]) == {(1, 0)}  # the older snapshot was loaded again for it
        assert found(log, "gone")[0].unscorable == Unscorable(UnscorableReason.VERSION_GONE)


@pytest.mark.usefixtures("alone")
async def test_a_prompt_longer_than_the_context_is_too_long(kafka: KafkaSettings, tmp_path: Path) -> None:
    small = engine(tmp_path, 0, max_context_tokens=4)
    async with worker(kafka, tmp_path, small), writer(kafka) as role, window(kafka, "rollouts") as log:
        await role.send_all(
            [weights(tmp_path, 1, 0), generation("g"), generation("short", token_ids=(1, 2), messages=())]
        )
        await log.until(lambda log: len(found(log, "g")) == 2 and len(found(log, "short")) == 2)
        assert [found(log, "g")[index].unscorable for index in range(2)] == [Unscorable(UnscorableReason.TOO_LONG)] * 2
        assert found(log, "short")[0].unscorable is None


@pytest.mark.usefixtures("alone")
async def test_deadlines_before_and_amid_sampling(kafka: KafkaSettings, tmp_path: Path) -> None:
    slow = engine(tmp_path, delay_seconds=0.4)
    async with worker(kafka, tmp_path, slow), writer(kafka) as role, window(kafka, "rollouts") as log:
        late = generation("late", admitted_at=time.time() - 100)
        await role.send_all([weights(tmp_path, 1, 0), late])
        await log.until(lambda log: len(found(log, "late")) == 2)
        assert {rollout.unscorable for rollout in found(log, "late").values()} == {
            Unscorable(UnscorableReason.DEADLINE)
        }
        await role.send(generation("amid", num_samples=20, deadline_seconds=1.0, admitted_at=time.time()))
        await log.until(lambda log: len(found(log, "amid")) == 20)
        ends = [found(log, "amid")[index].unscorable for index in range(20)]
        assert ends[0] is None
        assert ends[-1] == Unscorable(UnscorableReason.DEADLINE)


@pytest.mark.usefixtures("alone")
async def test_a_cancel_ends_sampling(kafka: KafkaSettings, tmp_path: Path) -> None:
    slow = engine(tmp_path, delay_seconds=0.2)
    async with worker(kafka, tmp_path, slow), writer(kafka) as role, window(kafka, "rollouts") as log:
        await role.send_all([weights(tmp_path, 1, 0), generation("g", num_samples=100)])
        await log.until(lambda log: len(found(log, "g")) >= 2)
        await role.send(Outgoing("generations", "g", Cancel(group_id="g", reason="cancelled")))
        await log.until(lambda log: len(found(log, "g")) == 100)
        reasons = [found(log, "g")[index].unscorable for index in range(100)]
        assert reasons[:2] == [None, None]
        assert reasons[-50:] == [Unscorable(UnscorableReason.CANCELLED)] * 50


@pytest.mark.usefixtures("alone")
async def test_a_takeover_samples_only_what_is_missing(kafka: KafkaSettings, tmp_path: Path) -> None:
    slow = engine(tmp_path, delay_seconds=0.2)
    async with writer(kafka, "scheduler") as role, window(kafka, "rollouts") as log:
        await role.send_all([weights(tmp_path, 1, 0), generation("g", num_samples=30), generation("h", 1)])
        first = asyncio.create_task(sample_with(slow, config(tmp_path), kafka, Metrics(), asyncio.Event()))
        await log.until(lambda log: len(found(log, "g")) >= 3 and len(found(log, "h")) == 2)
        first.cancel()  # amid the group, with nothing committed
        with pytest.raises(asyncio.CancelledError):
            await first
        await log.quiet()
        assert len(found(log, "g")) < 30
        async with worker(kafka, tmp_path):
            await log.until(lambda log: len(found(log, "g")) == 30)
            await log.quiet()
        assert len(log.records) == 32  # no index twice


class Dying(RecordedEngine):
    """Fails at the first sample."""

    def sample(self, request: object) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise EngineError("out of memory")


@pytest.mark.usefixtures("alone")
async def test_an_engine_that_fails_ends_the_worker_and_nothing_is_committed(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    file = config(tmp_path).engine.recorded_answers
    assert file is not None
    async with writer(kafka) as role, window(kafka, "rollouts") as log:
        await role.send_all([weights(tmp_path, 1, 0), generation("g")])
        with pytest.raises(EngineFailed, match="out of memory"):
            await sample_with(Dying(file), config(tmp_path), kafka, Metrics(), asyncio.Event())
        async with worker(kafka, tmp_path):
            await log.until(lambda log: len(found(log, "g")) == 2)
        assert {rollout.unscorable for rollout in log.of(Rollout)} == {None}


@pytest.mark.usefixtures("alone")
async def test_a_prompt_that_the_model_cannot_be_asked_ends_with_the_reason_and_harms_nobody(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    async with worker(kafka, tmp_path), writer(kafka, "learner") as role, window(kafka, "rollouts") as log:
        await role.send(weights(tmp_path, 1, 0))
        await role.send_all(
            [generation("bad", messages=(), token_ids=(1, 999_999)), generation("good", 1), generation("later", 2)]
        )
        await log.until(lambda log: all(len(found(log, name)) == 2 for name in ("bad", "good", "later")))
        assert {rollout.unscorable for rollout in found(log, "bad").values()} == {
            Unscorable(UnscorableReason.POISONED, "a token of the prompt is no byte: bytes must be in range(0, 256)")
        }
        assert {rollout.unscorable for name in ("good", "later") for rollout in found(log, name).values()} == {None}


class OfAnotherModel(RecordedEngine):
    """No weights fit."""

    async def load(self, directory: Path, incarnation: int, version: int) -> None:
        raise ValueError("x.weight is (2, 3); the model's is (4, 3)")


@pytest.mark.usefixtures("alone")
async def test_weights_of_another_model_end_the_worker_for_good(kafka: KafkaSettings, tmp_path: Path) -> None:
    file = config(tmp_path).engine.recorded_answers
    assert file is not None
    async with writer(kafka, "learner") as role:
        await role.send_all([weights(tmp_path, 1, 0), generation("g")])
        with pytest.raises(EngineRefused, match=r"weights 1\.0 .*x\.weight") as told:
            await sample_with(OfAnotherModel(file), config(tmp_path), kafka, Metrics(), asyncio.Event())
    assert not told.value.restart_helps


async def test_an_engine_that_cannot_start(kafka: KafkaSettings, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("{")
    with pytest.raises(EngineFailed, match=r"none\.jsonl"):
        await sample_with(RecordedEngine(tmp_path / "none.jsonl"), config(tmp_path), kafka, Metrics(), asyncio.Event())
