"""What the learner says: weights, when their bytes are durable, and progress."""

import asyncio
import time
from pathlib import Path

import msgspec

from learner.book.feed import Feed
from learner.book.incarnation import check_newest
from learner.config import LearnerConfig
from learner.training.trainer import Trainer
from schemas import PolicyVersion, Progress, Snapshot, WeightUpdate
from schemas.topics import PROGRESS, WEIGHTS
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing
from wire.metrics import Metrics
from wire.weights.snapshots import describe


class Announcer:
    """Progress follows every change; while `turn` is held by another it waits, and weights go first."""

    def __init__(
        self, config: LearnerConfig, feed: Feed, trainer: Trainer, publisher: Publisher, metrics: Metrics
    ) -> None:
        self.turn = asyncio.Lock()
        self.changed = asyncio.Event()
        """Something has ended: progress is to be told."""
        self._config = config
        self._feed = feed
        self._trainer = trainer
        self._publisher = publisher
        self._metrics = metrics
        self._published: PolicyVersion | None = None

    async def weights(self) -> Path | None:
        """Announce the present version, after its bytes are durable; once. The snapshot; None when it was out before.

        Raises Superseded.
        """
        version = self._feed.position.policy_version
        if version == self._published:
            return None
        check_newest(self._config.checkpoints, version.incarnation)
        directory = await self._trainer.snapshot(version)
        model = self._config.model
        update = WeightUpdate(
            run_id=self._config.run_id,
            model=model,
            incarnation=version.incarnation,
            version=version.version,
            snapshot=await asyncio.to_thread(self._durable, directory, version),
            published_at=time.time(),
        )
        await self._publisher.send(Outgoing(WEIGHTS.name, f"{model}:{version.incarnation}", update))
        self._published = version
        self._metrics.weights_incarnation.set(version.incarnation)
        self._metrics.weights_version.set(version.version)
        return directory

    def _durable(self, directory: Path, version: PolicyVersion) -> Snapshot:
        """The manifest, when all its bytes are where workers fetch them."""
        snapshot = describe(directory, version.version)
        stored = self._config.stored
        if stored is None:
            return snapshot
        stored.check_newest(version.incarnation)
        return msgspec.structs.replace(snapshot, uri=stored.keep_snapshot(directory))

    async def progress(self, *, finished: bool = False) -> None:
        """Tell the position as it is."""
        async with self.turn:
            self.changed.clear()
            position = self._feed.position
            progress: Progress = position.progress(
                run_id=self._config.run_id,
                closing=self._feed.closing,
                finished=finished,
                updated_at=time.time(),
                weights=self._published,
            )
            key = f"{self._config.run_id}:{position.incarnation}"
            await self._publisher.send(Outgoing(PROGRESS.name, key, progress))

    async def follow(self) -> None:
        """Progress after every end, so that a dropped group frees its place at once; until cancelled."""
        while True:
            await self.changed.wait()
            await self.progress()
