"""The training side of the learner: everything that takes long, on one thread of its own.

One thread, because torch keeps its thread count and DeepSpeed its state for the thread that works; apart from the
event loop, so that reading, progress and /metrics go on during a step.
"""

import asyncio
import pkgutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import torch

from learner.algorithms.base import Algorithm
from learner.algorithms.registry import ALGORITHMS
from learner.config import LearnerConfig
from learner.training.checkpoint import load_checkpoint, save_checkpoint
from learner.training.engine import DeepSpeedEngine, start_engine
from learner.training.pace import Pace
from learner.training.probe import Probe, Publication
from learner.training.samples import samples_of
from learner.training.step import StepAbandoned, StepResult, optimizer_step
from learner.training.weights import prune_snapshots, write_snapshot
from schemas import PolicyVersion, Trajectory


class Trainer:
    """Use as `async with`; leaving waits for what is running."""

    def __init__(self, config: LearnerConfig) -> None:
        self._config = config
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="trainer")
        self._abandon = threading.Event()
        self._engine: DeepSpeedEngine | None = None
        self._probe: Probe | None = None
        algorithm: type[Algorithm] = pkgutil.resolve_name(ALGORITHMS[config.training.algorithm].path)
        self._algorithm = algorithm.of(config.training)
        self._pace = Pace(config.training.micro_batch_tokens)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()
        await asyncio.to_thread(self._thread.shutdown, wait=True)
        # the process group stays: DeepSpeed keeps clones of it for as long as the process lives
        self._engine = None

    async def start(self, checkpoint: Path | None) -> None:
        """Load the model, and the checkpoint over it. Raises CompilerMissing, UnsupportedModel, CheckpointError."""

        def work() -> DeepSpeedEngine:
            engine = start_engine(self._config)
            if checkpoint is not None:
                load_checkpoint(checkpoint, engine)
            return engine

        self._engine = await self._run(work)
        self._probe = Probe(self._engine)

    @property
    def vocabulary(self) -> int:
        return self.engine.vocabulary

    @property
    def engine(self) -> DeepSpeedEngine:
        if self._engine is None:
            raise RuntimeError("the trainer is not started")
        return self._engine

    @property
    def probe(self) -> Probe:
        if self._probe is None:
            raise RuntimeError("the trainer is not started")
        return self._probe

    async def step(self, groups: Sequence[Trajectory], age: Callable[[PolicyVersion], int]) -> StepResult | None:
        """One update on these groups; None when it was abandoned, and nothing has changed.

        `age`: updates since a version; it must not change meanwhile.
        """

        def work() -> StepResult | None:
            samples = samples_of(groups, self._algorithm, age)
            self.probe.settle(samples)
            try:
                return optimizer_step(self.engine, samples, self._algorithm, self._pace, self._abandon.is_set)
            except StepAbandoned:
                return None

        return await self._run(work)

    def abandon(self) -> None:
        """Let a running step end at its next micro-batch, and every later one at once. For the end of the process."""
        self._abandon.set()

    async def save(self, incarnation: int, position: bytes) -> Path:
        """Write a checkpoint with this position (JSON)."""
        directory, keep = self._config.checkpoints, self._config.training.keep_checkpoints

        def work() -> Path:
            checkpoint = save_checkpoint(directory, self.engine, incarnation, position, keep)
            if self._config.stored is not None:
                self._config.stored.keep_checkpoint(checkpoint, incarnation, keep)
            return checkpoint

        return await self._run(work)

    async def snapshot(self, version: PolicyVersion) -> Path:
        """Write the weights as a Hugging Face directory."""
        config = self._config
        dtype: torch.dtype = getattr(torch, config.training.snapshot_dtype)
        return await self._run(
            lambda: write_snapshot(config.weights, self.engine, version, config.model_directory, dtype)
        )

    async def measure(self, directory: Path) -> Publication:
        """See what the newest snapshot is worth, now that it is announced; older ones go."""

        def work() -> Publication:
            publication = self.probe.measure(directory)
            keep = self._config.training.keep_snapshots
            prune_snapshots(self._config.weights, keep)
            if self._config.stored is not None:
                self._config.stored.prune_snapshots(keep)
            return publication

        return await self._run(work)

    async def _run[T](self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
