"""The learner: reads `trajectories`, trains, and answers with weights and progress.

    start   `resume`: an incarnation, the newest checkpoint, the ledger rolled back to it;
            a full snapshot, then progress
    loop    intake ─► feed ─► batch ─► step ─► ledger ─► weights ─► progress ─► checkpoint ─► metrics
    end     when every admitted group has ended (or on `stop`): checkpoint, weights, progress

Events are taken in beside the step, which runs on the trainer's thread. Everything else happens in the event loop,
so position, ledger and feed always change together.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from learner.announce import Announcer
from learner.book.feed import Batch, Ended, Feed
from learner.book.incarnation import check_newest
from learner.book.ledger import Ledger
from learner.book.position import Position, check_position
from learner.config import LearnerConfig
from learner.errors import TooManySkippedSteps
from learner.intake import ROLE, Intake
from learner.metrics_log import MetricsLog, UpdateSeconds, show, update_line
from learner.resume import next_offsets, resume
from learner.training.engine import check_compiler
from learner.training.probe import Publication
from learner.training.step import StepResult
from learner.training.trainer import Trainer
from learner.watch import Watch
from schemas import Outcome
from wire.kafka.publisher import Publisher
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.metrics import Metrics
from wire.together import beside

logger = logging.getLogger(__name__)

MAX_SKIPPED_IN_A_ROW = 8
"""Non-finite updates one after another, until the learner gives up: bad data skips one, bad weights skip all."""


async def run_learner(config: LearnerConfig, settings: KafkaSettings, metrics: Metrics, stop: asyncio.Event) -> None:
    """Train until every group of the run has ended, or until `stop` is set. Raises LearnerError or WireError."""
    check_compiler()
    position, checkpoint = await resume(config, settings)
    async with AsyncExitStack() as resources:
        trainer = await resources.enter_async_context(Trainer(config))
        await trainer.start(checkpoint)
        publisher = await resources.enter_async_context(Publisher(settings, ROLE))
        offsets = await next_offsets(position, config.partitions, settings)
        trajectories = await resources.enter_async_context(Tail(settings, offsets))
        ledger = Ledger(config.run_directory, config.checkpoints, position.incarnation)
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
        training = config.training
        self._checkpoints = config.checkpoints
        self._training = training
        self._position = position
        self._feed = Feed(position, batch_groups=training.batch_groups, max_staleness=training.max_staleness)
        self._trainer = trainer
        self._ledger = ledger
        self._log = log
        self._metrics = metrics
        self._announcer = Announcer(config, self._feed, trainer, publisher, metrics)
        self._intake = Intake(
            self._feed, trajectories, publisher, metrics, vocabulary=trainer.vocabulary, record=self._record
        )
        self._watch = Watch(training.warmup_updates, training.snapshot_dtype)
        self._saved: tuple[int, int, int | None] | None = None
        """Version, ledger lines and what `Drained` said, in the last checkpoint."""
        self._skipped_in_a_row = 0
        self._lines_at_last_update = position.ledger_lines
        self._started = time.monotonic()
        self._idle_since: float | None = None
        """Since when the learner waits for its next batch; None before its first."""

    async def run(self, stop: asyncio.Event) -> None:
        """From the first snapshot to the last progress."""
        published = await self._announcer.weights()
        if self._is_over():
            self._record(self._feed.close())
        await self._announcer.progress()
        self._look_at(await self._worth(published))
        await beside(self._train(stop), self._intake.run(), self._announcer.follow(), self._heed(stop))
        if self._feed.drained:
            self._look_at(await self._worth(await self._announcer.weights()))
        await self._save()
        await self._announcer.progress(finished=self._feed.drained)

    async def _train(self, stop: asyncio.Event) -> None:
        """Update after update, until all is over."""
        while not self._feed.drained and not stop.is_set():
            self._intake.wake.clear()
            taken = self._feed.take_batch()
            self._record(taken.ended)
            if taken.ended:
                self._intake.wake.set()
            if taken.batch is not None:
                await self._update(taken.batch)
            elif not self._feed.drained:
                await self._intake.look_again()
                check_newest(self._checkpoints, self._position.incarnation)
                if self._waited_too_long():
                    self._record(self._feed.close())

    async def _update(self, batch: Batch) -> None:
        """One batch: step, ledger, weights, progress, checkpoint, metrics, in this order.

        Weights go before progress: what the scheduler then admits is sampled with them.
        """
        clock = time.monotonic
        seconds = UpdateSeconds(wait=self._waited(batch))
        begun = clock()
        result = await self._trainer.step(batch.groups, self._position.age)
        if result is None:
            return
        seconds.step = clock() - begun
        outcome = Outcome.TRAINED if result.applied else Outcome.STEP_SKIPPED
        published = None
        # progress waits: told of these ends before the weights are out, the scheduler would admit groups that are
        # begun with the old ones, and are stale before they are trained on
        async with self._announcer.turn:
            self._record(self._feed.finish_batch(batch, outcome))
            self._position.training_seconds += seconds.wait + seconds.step
            if self._is_over() and not self._feed.closing:
                self._record(self._feed.close())
            begun = clock()
            if result.applied and (
                self._feed.closing or self._position.version % self._training.snapshot_every_updates == 0
            ):
                published = await self._announcer.weights()
        await self._announcer.progress()
        self._skipped_in_a_row = 0 if result.applied else self._skipped_in_a_row + 1
        if self._skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise TooManySkippedSteps(
                f"{MAX_SKIPPED_IN_A_ROW} updates in a row were not finite (loss or gradient): the weights cannot be "
                "trained on. Resume from the last checkpoint with a lower learning_rate"
            )
        publication = await self._worth(published)
        seconds.publish = clock() - begun
        begun = clock()
        if result.applied and self._position.version % self._training.checkpoint_every_updates == 0:
            await self._save()
        seconds.checkpoint = clock() - begun
        self._position.training_seconds += seconds.publish + seconds.checkpoint
        self._measure(batch, result, publication, seconds)
        logger.info(
            "update %s %s: loss %.4f, %.1f s", self._position.policy_version, outcome, result.loss, seconds.step
        )
        self._idle_since = clock()
        self._intake.wake.set()

    def _waited(self, batch: Batch) -> float:
        """Seconds that the learner was idle. Training begins with the first admission: evaluation may go before."""
        now = time.monotonic()
        if self._idle_since is not None:
            return now - self._idle_since
        admitted_at = min(group.admitted_at for group in batch.groups)
        return min(now - self._started, max(0.0, time.time() - admitted_at))

    def _is_over(self) -> bool:
        return self._position.is_over(self._training.max_updates, self._training.max_seconds)

    def _waited_too_long(self) -> bool:
        """Whether the time for training went by in waiting for a batch."""
        limit = self._training.max_seconds
        if limit is None or self._idle_since is None or self._feed.closing:
            return False
        return self._position.training_seconds + time.monotonic() - self._idle_since > limit

    def _measure(
        self, batch: Batch, result: StepResult, publication: Publication | None, seconds: UpdateSeconds
    ) -> None:
        """A line of metrics.jsonl, /metrics, and warnings."""
        position = self._position
        dropped = position.ledger_lines - self._lines_at_last_update - len(batch.groups)
        self._lines_at_last_update = position.ledger_lines
        causes = self._watch.causes(result)
        warnings = self._watch.published(publication) if publication is not None else []
        if result.applied:
            warnings += self._watch.update(position.version, result, causes, publication)
        self._warn(warnings)
        line = update_line(
            position.policy_version,
            batch,
            result,
            seconds,
            causes=causes,
            publication=publication,
            warnings=warnings,
            groups_dropped=dropped,
            now=time.time(),
        )
        self._log.append(line)
        show(self._metrics, batch, result, seconds, causes, publication)

    async def _worth(self, snapshot: Path | None) -> Publication | None:
        return None if snapshot is None else await self._trainer.measure(snapshot)

    def _look_at(self, publication: Publication | None) -> None:
        if publication is not None:
            self._warn(self._watch.published(publication))

    def _warn(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            logger.warning("version %s: %s", self._position.policy_version, warning)

    def _record(self, ended: Sequence[Ended]) -> None:
        """Into the ledger, before anything that counts on it. Raises Superseded."""
        self._ledger.append(ended)
        for line in ended:
            self._metrics.groups_ended.labels(line.outcome).inc()
        if ended:
            self._announcer.changed.set()

    async def _save(self) -> None:
        """A checkpoint of what the ledger holds now; none when the last one holds the same."""
        here = (self._position.version, self._position.ledger_lines, self._position.admitted)
        if here == self._saved:
            return
        check_newest(self._checkpoints, self._position.incarnation)
        check_position(self._position)
        position = msgspec.json.encode(self._position)
        self._ledger.sync()
        await self._trainer.save(self._position.incarnation, position)
        self._saved = here

    async def _heed(self, stop: asyncio.Event) -> None:
        """A step may take long: `stop` ends it at its next micro-batch."""
        await stop.wait()
        self._trainer.abandon()
        self._intake.wake.set()
