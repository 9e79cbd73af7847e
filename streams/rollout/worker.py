"""The rollout worker: generations in, one rollout a sample out, by an engine that follows the learner's weights.

    generations ──► what is left to sample ──► engine ──► rollouts, each as it finishes
    weights ──────► PolicyFollower ──────────────┘

A group's samples may end in three ways: sampled; `cancelled` or `deadline` while waiting or sampling; never
begun (`too_long`, `version_gone`, `poisoned`: also of a prompt that this model cannot be asked). Whatever it is, every
index leaves a rollout behind (invariant 3).
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from schemas import Cancel, Drained, Generation, UnscorableReason, WeightUpdate
from schemas.topics import GENERATIONS, ROLLOUTS
from streams.config import EngineConfig
from streams.rollout.engines.base import (
    Completion,
    Engine,
    EngineError,
    ModelRefused,
    PromptRefused,
    PromptTooLong,
    SampleRequest,
)
from streams.rollout.follower import PolicyFollower, VersionGone
from streams.rollout.plan import is_too_late, remaining_samples, rollout_of, unscorable_rollout
from streams.rollout.takeover import Takeover
from streams.rollout.weights_intake import follow_weights
from wire.errors import StopWorker
from wire.hop.consumer_hop import run_consumer_hop
from wire.hop.hop import Hop
from wire.kafka.log_reader import LogReader
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing, Place, Record
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics
from wire.together import beside
from wire.weights.snapshots import fetch

log = logging.getLogger(__name__)

NAME = "rollout"
SPARE_GROUPS = 8
"""Groups in flight beyond a full batch, so that a cancel reaches the worker and the next groups are ready."""
KEPT_SNAPSHOTS = 3
"""Snapshots kept in this worker's cache."""


class EngineFailed(StopWorker):
    """The engine cannot go on: a supervisor starts the worker again."""


class EngineRefused(StopWorker):
    """The engine cannot sample with this model, or with these weights, and never will."""

    restart_helps = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutConfig:
    """What a rollout worker is told."""

    name: str
    """This worker's own name among the run's, e.g. `rollout-0`: the same after a restart."""
    run_directory: Path
    """Holds `state/<name>/`: the journal and the cache of weights."""
    engine: EngineConfig
    """Its section of the run's settings, with a dtype that is chosen."""
    model_directory: Path | None
    """`transformers`: the Hugging Face directory of the model; its weights are replaced by the stream's first."""
    seed: int

    @property
    def state_directory(self) -> Path:
        return self.run_directory / "state" / self.name


async def run_rollout_worker(
    config: RolloutConfig, settings: KafkaSettings, metrics: Metrics, stop: asyncio.Event
) -> None:
    """Sample until `stop` is set. Raises EngineFailed, EngineRefused, and what the stream raises."""
    await sample_with(make_engine(config), config, settings, metrics, stop)


async def sample_with(
    engine: Engine, config: RolloutConfig, settings: KafkaSettings, metrics: Metrics, stop: asyncio.Event
) -> None:
    """The same with an engine that was made before; it is started and stopped here."""
    cache = config.state_directory / "weights"

    async def fetched(update: WeightUpdate) -> Path:
        return await fetch(update.snapshot, cache, keep=KEPT_SNAPSHOTS)

    def announce(update: WeightUpdate) -> None:
        metrics.weights_incarnation.set(update.incarnation)
        metrics.weights_version.set(update.version)
        log.info("weights %d.%d are loaded", update.incarnation, update.version)

    follower = PolicyFollower(
        engine,
        fetched,
        on_loaded=announce,
        on_failure=lambda update: metrics.weights_refused.inc(),
    )
    try:
        await engine.start()
        async with LogReader(settings) as reader, Publisher(settings, NAME) as publisher:
            hop = RolloutWorker(engine, follower, publisher, Takeover(reader), metrics, config.engine.max_batch)
            await beside(
                run_consumer_hop(
                    hop,
                    settings,
                    stop=stop,
                    instance_id=config.name,
                    state_directory=config.state_directory,
                    metrics=metrics,
                ),
                follower.run(),
                follow_weights(settings, follower, metrics),
            )
    except ModelRefused as error:
        raise EngineRefused(str(error)) from error
    except EngineError as error:
        raise EngineFailed(f"the engine failed: {error}") from error
    finally:
        await engine.stop()


def make_engine(config: RolloutConfig) -> Engine:
    """The engine by its name. Only `transformers` imports torch. Raises ValueError for what it lacks."""
    chosen = config.engine
    if chosen.kind == "recorded":
        from streams.rollout.engines.recorded import RecordedEngine

        if chosen.recorded_answers is None:
            raise ValueError("engine `recorded` needs `recorded_answers`, the file of answers")
        return RecordedEngine(chosen.recorded_answers)
    import torch

    from streams.rollout.engines.transformers_engine import TransformersEngine

    if config.model_directory is None:
        raise ValueError("engine `transformers` needs `model_directory`")
    if chosen.dtype == "auto":
        raise ValueError("engine `transformers` needs a dtype: float32 or bfloat16")
    return TransformersEngine(
        config.model_directory,
        device=chosen.device,
        dtype={"float32": torch.float32, "bfloat16": torch.bfloat16}[chosen.dtype],
        max_batch=chosen.max_batch,
        seed=config.seed,
        num_threads=chosen.threads or None,
        chat_template=chosen.chat_template,
    )


@dataclass(eq=False)
class _Sampling:
    """One group in hand."""

    generation: Generation
    offset: int
    missing: list[int]
    """Sample indices that have left no rollout behind."""
    attempt: int = 1
    """It rises when handling the generation failed, and this worker tries again."""
    scope: asyncio.Timeout | None = None
    """Ends at the group's deadline, or with a cancel."""
    cancelled: UnscorableReason | None = None
    """The reason of the cancel that came."""


class RolloutWorker(Hop[Generation | Cancel | Drained]):
    """Publishes by itself, sample by sample; a generation is done when all its samples are on the log."""

    name = NAME
    topics = (GENERATIONS,)
    stall_seconds = 24 * 3600.0
    """A group may wait for its version, or for the first weights, until its deadline; the engine has its own guard."""

    def __init__(
        self,
        engine: Engine,
        follower: PolicyFollower,
        publisher: Publisher,
        takeover: Takeover,
        metrics: Metrics,
        max_batch: int,
    ) -> None:
        self.concurrency = max_batch + SPARE_GROUPS  # groups of one sample fill the batch too
        self._engine = engine
        self._follower = follower
        self._publisher = publisher
        self._takeover = takeover
        self._metrics = metrics
        self._sampling: dict[str, _Sampling] = {}
        self._failed: dict[tuple[int, int], _Sampling] = {}
        """By (partition, offset): generations whose handling failed, as they stood then."""

    def assigned(self, starts: Mapping[Place, int]) -> None:
        self._takeover.assigned(number for _, number in starts)

    def revoked(self, partitions: Iterable[Place]) -> None:
        lost = {number for _, number in partitions}
        self._takeover.revoked(lost)
        self._failed = {place: group for place, group in self._failed.items() if place[0] not in lost}

    async def handle(self, event: Generation | Cancel | Drained, record: Record) -> Sequence[Outgoing]:
        if isinstance(event, Cancel):
            self._cancel(event)
        elif isinstance(event, Generation):
            await self._sample_group(event, record)
        return ()

    def poisoned(self, event: Generation | Cancel | Drained, record: Record) -> Sequence[Outgoing]:
        return self._unscorable(event, record, UnscorableReason.POISONED)

    def exhausted(self, event: Generation | Cancel | Drained, record: Record, reason: str) -> Sequence[Outgoing]:
        return self._unscorable(event, record, UnscorableReason.SAMPLING_FAILED)

    def _unscorable(
        self, event: Generation | Cancel | Drained, record: Record, reason: UnscorableReason
    ) -> Sequence[Outgoing]:
        if not isinstance(event, Generation):
            return ()
        # some may be on the log already: there the first of an index counts
        failed = self._failed.pop((record.partition, record.offset), None)
        missing = range(event.num_samples) if failed is None else failed.missing
        return [unscorable_rollout(event, record.offset, index, reason) for index in missing]

    def _cancel(self, event: Cancel) -> None:
        group = self._sampling.get(event.group_id)
        if group is None:
            return
        group.cancelled = UnscorableReason(event.reason)
        if group.scope is not None:
            group.scope.reschedule(asyncio.get_running_loop().time())

    async def _sample_group(self, generation: Generation, record: Record) -> None:
        place = (record.partition, record.offset)
        group = _Sampling(generation, record.offset, list(range(generation.num_samples)))
        if (failed := self._failed.pop(place, None)) is not None:
            group.missing, group.attempt = failed.missing, failed.attempt + 1
        self._sampling[generation.group_id] = group  # before the first await: a cancel stands behind us in the log
        try:
            remaining = remaining_samples(generation, await self._takeover.found(generation, record))
            group.missing = [index for index in group.missing if index in remaining]
            await self._sample_or_say_why(group)
        except Exception:
            self._failed[place] = group
            raise
        finally:
            del self._sampling[generation.group_id]

    async def _sample_or_say_why(self, group: _Sampling) -> None:
        generation = group.generation
        if group.cancelled or is_too_late(generation, time.time()):
            await self._give_up(group, group.cancelled or UnscorableReason.DEADLINE)
            return
        scope = asyncio.timeout(generation.admitted_at + generation.deadline_seconds - time.time())
        try:
            async with scope:
                group.scope = scope
                async with self._policy(generation):
                    await self._sample(group)
        except TimeoutError:
            if not scope.expired():
                raise
            await self._give_up(group, group.cancelled or UnscorableReason.DEADLINE)
        except PromptTooLong as error:
            log.info("group %s: %s", generation.group_id, error)
            await self._give_up(group, UnscorableReason.TOO_LONG)
        except PromptRefused as error:
            log.warning("prompt %s: %s", generation.prompt_id, error)
            await self._give_up(group, UnscorableReason.POISONED, str(error))
        except VersionGone as error:
            log.warning("group %s: %s", generation.group_id, error)
            await self._give_up(group, UnscorableReason.VERSION_GONE)
        except EngineError as error:
            raise EngineFailed(f"the engine failed: {error}") from error
        finally:
            group.scope = None

    @asynccontextmanager
    async def _policy(self, generation: Generation) -> AsyncGenerator[None]:
        """Inside, the engine holds a version of the stream: exactly the one asked for, or none that is too old."""
        if generation.policy_version is None:
            await self._follower.at_least(generation.least_policy_version)
            yield
        else:
            async with self._follower.hold(generation.policy_version):
                yield

    async def _sample(self, group: _Sampling) -> None:
        if not group.missing:
            return
        generation = group.generation
        prompt = list(generation.token_ids) or self._engine.render(
            [{"role": message.role, "content": message.content} for message in generation.messages]
        )
        request = SampleRequest(
            group_id=generation.group_id,
            prompt_token_ids=prompt,
            sample_indices=list(group.missing),
            temperature=generation.sampling.temperature,
            max_new_tokens=generation.sampling.max_new_tokens,
            stop=generation.sampling.stop,
        )
        # closed when it is left early: that gives up the rest
        async with aclosing(cast(AsyncGenerator[Completion], self._engine.sample(request))) as completions:
            async for completion in completions:
                await self._finish(group, prompt, completion)

    async def _finish(self, group: _Sampling, prompt: list[int], completion: Completion) -> None:
        if completion.finish_reason == "cancelled":
            # a cancel of ours leaves the iterator instead
            raise EngineError("it was stopped while sampling")
        await self._publish(
            group, [rollout_of(group.generation, group.offset, prompt, completion, attempt=group.attempt)]
        )
        group.missing.remove(completion.sample_index)
        self._metrics.tokens_sampled.inc(sum(len(span.token_ids) for span in completion.spans))

    async def _give_up(self, group: _Sampling, reason: UnscorableReason, detail: str = "") -> None:
        outs = [unscorable_rollout(group.generation, group.offset, index, reason, detail) for index in group.missing]
        await self._publish(group, outs)
        group.missing.clear()

    async def _publish(self, group: _Sampling, outs: Sequence[Outgoing]) -> None:
        await self._publisher.send_all(outs)
        self._metrics.events_out.labels(NAME, ROLLOUTS.name).inc(len(outs))
