"""The learner: reads `trajectories`, trains, and answers with weights and progress.

    start   take an incarnation, load the newest checkpoint, roll the ledger back to it,
            publish a full snapshot, then progress
    loop    take in events ─► feed ─► batch ─► step ─► ledger ─► weights ─► progress ─► checkpoint ─► metrics
    end     when every admitted group has ended (or on `stop`): checkpoint, weights, progress

Events are taken in beside the step, which runs on the trainer's thread. Everything else happens in the event loop,
so position, ledger and feed always change together.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any

import msgspec

from learner.book.feed import Batch, Ended, Feed
from learner.book.incarnation import check_newest, take_incarnation
from learner.book.ledger import Ledger, roll_back
from learner.book.position import Position, check_position
from learner.config import LearnerConfig
from learner.durable import remove_leftovers
from learner.errors import TooManySkippedSteps
from learner.metrics_log import MetricsLog, UpdateSeconds, update_line
from learner.training.checkpoint import load_position, newest_checkpoint
from learner.training.engine import check_compiler
from learner.training.samples import usable
from learner.training.step import StepResult
from learner.training.trainer import Trainer
from schemas import MalformedEvent, Outcome, PolicyVersion, Progress, UnknownVersion, WeightUpdate
from schemas.codec import decode
from schemas.errors import SchemaError
from schemas.topics import PROGRESS, TRAJECTORIES, WEIGHTS
from wire.errors import UpgradeFirst
from wire.kafka.log_reader import LogReader
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing, Record
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.kafka.topics import read_log_id
from wire.metrics import Metrics
from wire.weights.snapshots import describe

logger = logging.getLogger(__name__)

ROLE = "learner"
MAX_SKIPPED_IN_A_ROW = 8
"""Non-finite updates one after another, until the learner gives up: bad data skips one, bad weights skip all."""
FETCH_RECORDS = 64
"""Of one read: what may be held beyond the feed's own bound."""
IDLE_SECONDS = 2.0
"""While nothing comes: how often to look whether another learner has taken over."""


async def run_learner(config: LearnerConfig, settings: KafkaSettings, metrics: Metrics, stop: asyncio.Event) -> None:
    """Train until every group of the run has ended, or until `stop` is set. Raises LearnerError or WireError."""
    check_compiler()
    log_id = await read_log_id(settings)
    config.run_directory.mkdir(parents=True, exist_ok=True)
    config.weights.mkdir(exist_ok=True)
    incarnation = take_incarnation(config.checkpoints, above=await _newest_on_stream(settings))
    remove_leftovers(config.checkpoints)
    remove_leftovers(config.weights)
    checkpoint = newest_checkpoint(config.checkpoints)
    position = Position() if checkpoint is None else load_position(checkpoint)
    moved = roll_back(config.run_directory, position.ledger_lines)
    position.begin(incarnation, log_id)
    logger.info(
        "incarnation %d begins at version %d (%s); %d ledger lines rolled back",
        incarnation,
        position.version,
        checkpoint or "no checkpoint",
        moved,
    )
    async with AsyncExitStack() as resources:
        trainer = await resources.enter_async_context(Trainer(config))
        await trainer.start(checkpoint)
        publisher = await resources.enter_async_context(Publisher(settings, ROLE))
        trajectories = await resources.enter_async_context(Tail(settings, await _starts(config, settings, position)))
        ledger = Ledger(config.run_directory, config.checkpoints, incarnation)
        resources.callback(ledger.close)
        log = MetricsLog(config.run_directory)
        resources.callback(log.close)
        await Learner(config, position, trainer, trajectories, publisher, ledger, log, metrics).run(stop)


class Learner:
    """One incarnation at work."""

    def __init__(
        self,
        config: LearnerConfig,
        position: Position,
        trainer: Trainer,
        trajectories: Tail,
        publisher: Publisher,
        ledger: Ledger,
        log: MetricsLog,
        metrics: Metrics,
    ) -> None:
        self._config = config
        self._position = position
        training = config.training
        self._feed = Feed(position, batch_groups=training.batch_groups, max_staleness=training.max_staleness)
        self._trainer = trainer
        self._trajectories = trajectories
        self._publisher = publisher
        self._ledger = ledger
        self._log = log
        self._metrics = metrics
        self._published: PolicyVersion | None = None
        self._saved: tuple[int, int, int | None] | None = None
        """Version, ledger lines and what `Drained` said, in the last checkpoint."""
        self._skipped_in_a_row = 0
        self._lines_at_last_update = position.ledger_lines
        self._idle_since = time.monotonic()
        self._progress_turn = asyncio.Lock()
        self._changed = asyncio.Event()
        """Something has ended: progress is to be told."""
        self._wake = asyncio.Event()
        """Something has come, or left room: whoever waits looks again."""

    async def run(self, stop: asyncio.Event) -> None:
        """From the first snapshot to the last progress."""
        await self._publish_weights()
        if self._position.version >= self._config.training.max_updates:
            self._record(self._feed.close())
        await self._publish_progress()
        await _beside(self._train(stop), self._take_in(), self._report(), self._heed(stop))
        if self._feed.drained:
            await self._publish_weights()
        await self._save()
        await self._publish_progress(finished=self._feed.drained)

    async def _take_in(self) -> None:
        """Events to the feed, as long as it has room."""
        while True:
            if self._feed.full:
                await _wait(self._wake, IDLE_SECONDS)
                self._wake.clear()
                continue
            records = await self._trajectories.poll(max_records=FETCH_RECORDS)
            self._metrics.events_in.labels(ROLE, TRAJECTORIES.name).inc(len(records))
            for record in records:
                await self._offer(record)
            if records:
                self._wake.set()

    async def _offer(self, record: Record) -> None:
        try:
            event = decode(record.value, TRAJECTORIES)
        except UnknownVersion as error:
            raise UpgradeFirst(f"{record.topic} [{record.partition}] at {record.offset}: {error}") from error
        except SchemaError as error:
            await self._publisher.dead_letter(record, str(error))
            self._metrics.dead_letters.labels(ROLE, "malformed").inc()
            return
        event = usable(event, self._trainer.vocabulary)
        duplicates = self._position.duplicates_dropped
        self._record(self._feed.offer(event, record.partition, record.offset))
        self._metrics.duplicates_dropped.labels(ROLE).inc(self._position.duplicates_dropped - duplicates)

    async def _train(self, stop: asyncio.Event) -> None:
        """Update after update, until all is over."""
        while not self._feed.drained and not stop.is_set():
            self._wake.clear()
            taken = self._feed.take_batch()
            self._record(taken.ended)
            if taken.ended:
                self._wake.set()
            if taken.batch is not None:
                await self._update(taken.batch)
            elif not self._feed.drained:
                await _wait(self._wake, IDLE_SECONDS)
                check_newest(self._config.checkpoints, self._position.incarnation)

    async def _update(self, batch: Batch) -> None:
        """One batch: step, ledger, weights, progress, checkpoint, metrics, in this order.

        Weights go before progress: what the scheduler then admits is sampled with them.
        """
        clock = time.monotonic
        seconds = UpdateSeconds(wait=clock() - self._idle_since)
        begun = clock()
        result = await self._trainer.step(batch.groups)
        if result is None:
            return
        seconds.step = clock() - begun
        outcome = Outcome.TRAINED if result.applied else Outcome.STEP_SKIPPED
        # `_report` waits: told of these ends before the weights are out, the scheduler would admit groups that are
        # begun with the old ones, and are stale before they are trained on
        async with self._progress_turn:
            self._record(self._feed.finish_batch(batch, outcome))
            if self._position.version >= self._config.training.max_updates and not self._feed.closing:
                self._record(self._feed.close())
            begun = clock()
            if result.applied and (
                self._feed.closing or self._position.version % self._config.training.snapshot_every_updates == 0
            ):
                await self._publish_weights()
        await self._publish_progress()
        self._skipped_in_a_row = 0 if result.applied else self._skipped_in_a_row + 1
        if self._skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise TooManySkippedSteps(
                f"{MAX_SKIPPED_IN_A_ROW} updates in a row were not finite (loss or gradient): the weights cannot be "
                "trained on. Resume from the last checkpoint with a lower learning_rate"
            )
        seconds.publish = clock() - begun
        begun = clock()
        if result.applied and self._position.version % self._config.training.checkpoint_every_updates == 0:
            await self._save()
        seconds.checkpoint = clock() - begun
        self._measure(batch, result, seconds)
        logger.info(
            "update %s %s: loss %.4f, %.1f s", self._position.policy_version, outcome, result.loss, seconds.step
        )
        self._idle_since = clock()
        self._wake.set()

    def _measure(self, batch: Batch, result: StepResult, seconds: UpdateSeconds) -> None:
        """A line of metrics.jsonl, and /metrics."""
        position, metrics = self._position, self._metrics
        dropped = position.ledger_lines - self._lines_at_last_update - len(batch.groups)
        self._lines_at_last_update = position.ledger_lines
        version = position.policy_version
        self._log.append(update_line(version, batch, result, seconds, groups_dropped=dropped, now=time.time()))
        metrics.step_seconds.observe(seconds.step)
        metrics.wait_seconds.inc(seconds.wait)
        if not result.applied:
            metrics.steps_skipped.inc()
            return
        metrics.loss.set(result.loss)
        metrics.gradient_norm.set(result.grad_norm)
        for age in batch.ages:
            metrics.staleness.observe(age)

    def _record(self, ended: list[Ended]) -> None:
        """Into the ledger, before anything that counts on it. Raises Superseded."""
        self._ledger.append(ended)
        for line in ended:
            self._metrics.groups_ended.labels(line.outcome).inc()
        if ended:
            self._changed.set()

    async def _publish_weights(self) -> None:
        """Announce this version, after its bytes are durable; once."""
        version = self._position.policy_version
        if version == self._published:
            return
        check_newest(self._config.checkpoints, version.incarnation)
        directory = await self._trainer.snapshot(version)
        model = self._config.model_directory.name
        update = WeightUpdate(
            run_id=self._config.run_id,
            model=model,
            incarnation=version.incarnation,
            version=version.version,
            snapshot=await asyncio.to_thread(describe, directory, version.version),
            published_at=time.time(),
        )
        await self._publisher.send(Outgoing(WEIGHTS.name, f"{model}:{version.incarnation}", update))
        self._published = version
        self._metrics.weights_incarnation.set(version.incarnation)
        self._metrics.weights_version.set(version.version)
        await self._trainer.prune()

    async def _report(self) -> None:
        """Progress after every end, so that a dropped group frees its place at once."""
        while True:
            await self._changed.wait()
            await self._publish_progress()

    async def _publish_progress(self, *, finished: bool = False) -> None:
        async with self._progress_turn:
            self._changed.clear()
            progress = self._position.progress(
                run_id=self._config.run_id,
                closing=self._feed.closing,
                finished=finished,
                updated_at=time.time(),
                weights=self._published,
            )
            key = f"{self._config.run_id}:{self._position.incarnation}"
            await self._publisher.send(Outgoing(PROGRESS.name, key, progress))

    async def _save(self) -> None:
        """A checkpoint of what the ledger holds now; none when the last one holds the same."""
        here = (self._position.version, self._position.ledger_lines, self._position.admitted)
        if here == self._saved:
            return
        check_newest(self._config.checkpoints, self._position.incarnation)
        check_position(self._position)
        position = msgspec.json.encode(self._position)
        self._ledger.sync()
        await self._trainer.save(self._position.incarnation, position)
        self._saved = here

    async def _heed(self, stop: asyncio.Event) -> None:
        """A step may take long: `stop` ends it at its next micro-batch."""
        await stop.wait()
        self._trainer.abandon()
        self._wake.set()


async def _starts(config: LearnerConfig, settings: KafkaSettings, position: Position) -> dict[tuple[str, int], int]:
    """Where to read each partition on; one that the position does not name, from its beginning."""
    topic = TRAJECTORIES.name
    async with LogReader(settings) as reader:
        return {
            (topic, partition): (
                position.offsets[partition]
                if partition in position.offsets
                else await reader.begin_offset(topic, partition)
            )
            for partition in range(config.partitions)
        }


async def _newest_on_stream(settings: KafkaSettings) -> int:
    """The highest incarnation that readers of this prefix know: they would ignore a lower one."""
    newest = 0
    async with LogReader(settings) as reader:
        for topic in (WEIGHTS, PROGRESS):
            for record in await reader.read_all(topic.name):
                try:
                    event = decode(record.value, topic)
                except MalformedEvent:
                    continue  # a stranger's: no learner wrote it
                if isinstance(event, WeightUpdate | Progress):
                    newest = max(newest, event.incarnation)
    return newest


async def _beside(main: Coroutine[Any, Any, None], *others: Coroutine[Any, Any, None]) -> None:
    """Run `main` to its end; the others end with it, and an error of any ends all and is raised."""
    tasks = [asyncio.create_task(work) for work in (main, *others)]
    try:
        pending = set(tasks)
        while tasks[0] in pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # the first error is on its way already


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Until `event` is set, at most `seconds`; the caller looks at its conditions again either way."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
