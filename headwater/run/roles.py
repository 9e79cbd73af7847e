"""What a role's process does: settings, metrics endpoint, stop signals, and then the role's own run function.

Each role is imported here only when it is to run: a sandbox host needs no torch, a learner no Faust.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from headwater.config.load import load_config
from headwater.config.run_config import RunConfig
from headwater.errors import ConfigError, HeadwaterError
from headwater.files.positions import newest_position
from headwater.files.run_directory import RunDirectory
from headwater.run.models import model_directory
from wire.hop.hop import Hop
from wire.kafka.settings import KafkaSettings
from wire.metrics import Metrics

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What every role is given."""

    name: str
    """Its name in the run directory, also when several of a kind run: `rollout-2`."""
    directory: RunDirectory
    settings: KafkaSettings
    metrics: Metrics
    stop: asyncio.Event
    allow_unenforced: tuple[str, ...] = ()
    """Of the sandbox: limits that this host need not enforce."""

    @property
    def instance_id(self) -> str:
        """The same after a restart on this host: the consumer group keeps its partitions."""
        return f"{self.name}-{socket.gethostname()}"

    @property
    def state(self) -> Path:
        path = self.directory.state(self.name)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def config(self) -> RunConfig:
        """The run's settings. Raises ConfigError when the run directory has none."""
        if not self.directory.config.is_file():
            raise ConfigError(
                f"the role {self.name} needs the run's settings: {self.directory.config} is not there. On another "
                "machine, copy the run's config.toml into the run directory first"
            )
        return load_config(self.directory.config, {})


async def run_role(
    kind: str,
    name: str,
    directory: RunDirectory,
    settings: KafkaSettings,
    *,
    metrics_port: int = 0,
    allow_unenforced: tuple[str, ...] = (),
) -> None:
    """Run one role until it is done or told to stop (SIGTERM, SIGINT). Raises HeadwaterError for an unknown one."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    directory.logs.mkdir(parents=True, exist_ok=True)
    metrics = Metrics()
    try:
        port = await metrics.serve(metrics_port, port_file=directory.port(name))
    except OSError as error:
        raise HeadwaterError(f"port {metrics_port} for /metrics is in use: give another --metrics-port") from error
    log.info("%s starts: process %d, broker %s, metrics on port %d", name, os.getpid(), settings.bootstrap, port)
    try:
        await RUN[kind](
            Role(
                name=name,
                directory=directory,
                settings=settings,
                metrics=metrics,
                stop=stop,
                allow_unenforced=allow_unenforced,
            )
        )
    finally:
        directory.port(name).unlink(missing_ok=True)
        await metrics.close()
    log.info("%s ends", name)


async def _dispatch(role: Role) -> None:
    from streams.grading.dispatch import Dispatch

    await _faust(role, Dispatch())


async def _sandbox(role: Role) -> None:
    from sandbox.judge import Judge
    from streams.grading.sandbox_worker import SandboxWorker

    judge = Judge(allow_unenforced=frozenset(role.allow_unenforced))
    await _faust(role, SandboxWorker(judge, role.metrics))


async def _reward(role: Role) -> None:
    from streams.grading.reward import RewardHop

    await _faust(role, RewardHop(role.metrics))


async def _collect(role: Role) -> None:
    from streams.collect.collect import Collect

    await _faust(role, Collect(role.settings, role.metrics))


async def _faust(role: Role, hop: Hop) -> None:
    from wire.hop.faust_hop import run_faust_hop

    await run_faust_hop(
        hop,
        role.settings,
        metrics=role.metrics,
        stop=role.stop,
        instance_id=role.instance_id,
        state_directory=role.state,
    )


async def _scheduler(role: Role) -> None:
    from streams.scheduler.scheduler import SchedulerConfig, run_scheduler

    config = role.config()
    await run_scheduler(
        SchedulerConfig(
            run_id=role.directory.run_id(),
            run_directory=role.directory.path,
            batch_groups=config.training.batch_groups,
            max_staleness=config.training.max_staleness,
            max_open_evaluations=config.evaluation.max_open_groups,
            sources=frozenset((source.name, source.domain) for source in config.data),
        ),
        role.settings,
        role.metrics,
        role.stop,
    )


async def _rollout(role: Role) -> None:
    from streams.rollout.worker import RolloutConfig, run_rollout_worker

    config = role.config()
    engine = config.engine
    await run_rollout_worker(
        RolloutConfig(
            name=role.instance_id,
            run_directory=role.directory.path,
            engine=engine.kind,
            model_directory=await model_directory(config.model) if engine.kind == "transformers" else None,
            device=_present("engine.device", engine.device),
            dtype=engine.dtype,
            num_threads=engine.threads or None,
            max_batch=engine.max_batch,
            seed=config.seed,
            recorded_answers=engine.recorded_answers,
        ),
        role.settings,
        role.metrics,
        role.stop,
    )


async def _learner(role: Role) -> None:
    from learner.config import LearnerConfig
    from learner.learner import run_learner

    config = role.config()
    _present("training.device", config.training.device)
    await run_learner(
        LearnerConfig(
            run_id=role.directory.run_id(),
            run_directory=role.directory.path,
            model_directory=await model_directory(config.model),
            partitions=config.broker.partitions,
            seed=config.seed,
            training=config.training,
        ),
        role.settings,
        role.metrics,
        role.stop,
    )


def _present[Device: str](setting: str, device: Device) -> Device:
    """The device. Raises ConfigError where it is not there, which no restart mends."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f"{setting} is cuda, but torch finds no GPU on this machine: see `nvidia-smi`, or set {setting} to cpu"
        )
    return device


async def _recorder(role: Role) -> None:
    from headwater.measure.recorder import run_recorder

    await run_recorder(role.directory.evaluations, role.directory.run_id(), role.settings, role.metrics, role.stop)


async def _source(role: Role) -> None:
    from headwater.run.sources import run_sources

    position = newest_position(role.directory)
    await run_sources(role.config(), position.sources if position else {}, role.settings, role.stop)


RUN: dict[str, Callable[[Role], Awaitable[None]]] = {
    "scheduler": _scheduler,
    "rollout": _rollout,
    "dispatch": _dispatch,
    "sandbox": _sandbox,
    "reward": _reward,
    "collect": _collect,
    "learner": _learner,
    "recorder": _recorder,
    "source": _source,
}
"""Role → how it is run."""
