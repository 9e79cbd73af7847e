"""The roles of a run: one table, of which everything that is asked of a role anywhere is read.

A new role is one entry of `ROLES` and the function that it names, which runs the role in this process until it is
done or `context.stop` is set. That function alone imports what the role is made of: a sandbox host needs no torch, a
learner no Faust, and to read this table takes neither.
"""

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headwater.errors import ConfigError, HeadwaterError
from headwater.run.cores import usable_cores
from schemas.roles import RoleName

if TYPE_CHECKING:
    from headwater.config.run_config import RunConfig
    from headwater.run.context import RoleContext
    from learner.config import Dtype, DtypeChoice
    from wire.hop.hop import Hop


def _one(config: "RunConfig") -> int:
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One kind of process."""

    name: str
    start: "Callable[[RoleContext], Awaitable[None]]"
    command: Literal["worker", "learner"] = "worker"
    """`headwater worker NAME` or `headwater learner`."""
    stop_order: int
    """Lower ends first, the same together. `up` starts them the other way round."""
    stop_seconds: float = 15.0
    """Between SIGTERM and SIGKILL."""
    may_finish: bool = False
    """It may be done before the run is: then exit status 0 is no death."""
    judges: bool = False
    """It runs programs, and is told which limits this host need not enforce."""
    modules: tuple[str, ...] = ()
    """Libraries that it needs beyond those of a bare installation, by the name they are imported by."""
    extra: str = ""
    """`pip install 'headwater[EXTRA]'` brings them."""
    processes: "Callable[[RunConfig], int]" = _one
    """How many of them `up` starts."""

    def names(self, count: int) -> list[str]:
        """`rollout`, `rollout-2`, …: each process has a name of its own."""
        return [self.name, *(f"{self.name}-{number}" for number in range(2, count + 1))]


async def _source(context: "RoleContext") -> None:
    from headwater.run.joining import check_reachable, config_here
    from headwater.run.sources import run_sources
    from learner.book.stored import Stored

    check_reachable(context.run, context.name)
    position = await asyncio.to_thread(Stored(context.run.storage, context.directory.path).newest_position)
    config = config_here(context.run, context.directory)
    await run_sources(config, position.sources if position else {}, context.settings, context.stop)


async def _scheduler(context: "RoleContext") -> None:
    from streams.scheduler.scheduler import SchedulerConfig, run_scheduler

    config = context.config
    await run_scheduler(
        SchedulerConfig(
            run_id=context.run.run_id,
            run_directory=context.directory.path,
            batch_groups=config.training.batch_groups,
            max_staleness=config.training.max_staleness,
            max_open_evaluations=config.evaluation.max_open_groups,
            min_free_bytes=config.broker.min_free_bytes,
            sources=frozenset((source.name, source.domain) for source in config.data),
        ),
        context.settings,
        context.metrics,
        context.stop,
    )


async def _rollout(context: "RoleContext") -> None:
    from headwater.run.joining import check_reachable, model_of
    from streams.rollout.worker import RolloutConfig, run_rollout_worker

    config = context.config
    engine = config.engine
    check_reachable(context.run, context.name)
    _present("engine.device", engine.device)
    settled = {"dtype": _settled("engine.dtype", engine.dtype), "threads": engine.threads or usable_cores()}
    await run_rollout_worker(
        RolloutConfig(
            name=context.instance_id,
            run_directory=context.directory.path,
            engine=engine.model_copy(update=settled),
            model_directory=await model_of(context.run) if engine.kind == "transformers" else None,
            seed=config.seed,
        ),
        context.settings,
        context.metrics,
        context.stop,
    )


async def _dispatch(context: "RoleContext") -> None:
    from streams.grading.dispatch import Dispatch

    await _faust(context, Dispatch())


async def _sandbox(context: "RoleContext") -> None:
    from sandbox.judge import Judge
    from streams.grading.sandbox_worker import SandboxWorker

    judge = Judge(allow_unenforced=frozenset(context.allow_unenforced))
    await _faust(context, SandboxWorker(judge, context.metrics))


async def _reward(context: "RoleContext") -> None:
    from streams.grading.reward import RewardHop

    await _faust(context, RewardHop(context.metrics))


async def _collect(context: "RoleContext") -> None:
    from streams.collect.collect import Collect

    await _faust(context, Collect(context.settings, context.metrics))


async def _learner(context: "RoleContext") -> None:
    from headwater.run.joining import check_reachable, model_of
    from learner.book.stored import stored_at
    from learner.config import LearnerConfig
    from learner.learner import run_learner

    config = context.config
    training = config.training
    check_reachable(context.run, context.name)
    _present("training.device", training.device)
    settled = {
        "dtype": _settled("training.dtype", training.dtype),
        "threads": training.threads or usable_cores(),
    }
    await run_learner(
        LearnerConfig(
            run_id=context.run.run_id,
            run_directory=context.directory.path,
            stored=stored_at(context.run.storage, context.directory.path),
            model=Path(config.model).name,
            model_directory=await model_of(context.run),
            partitions=context.run.partitions,
            seed=config.seed,
            training=config.training.model_copy(update=settled),
        ),
        context.settings,
        context.metrics,
        context.stop,
    )


async def _recorder(context: "RoleContext") -> None:
    from headwater.measure.recorder import run_recorder

    directory = context.directory
    await run_recorder(directory.evaluations, context.run.run_id, context.settings, context.metrics, context.stop)


async def _faust(context: "RoleContext", hop: "Hop[Any]") -> None:
    from wire.hop.faust_hop import run_faust_hop

    await run_faust_hop(
        hop,
        context.settings,
        metrics=context.metrics,
        stop=context.stop,
        instance_id=context.instance_id,
        state_directory=context.state,
    )


def _settled(setting: str, dtype: "DtypeChoice") -> "Dtype":
    """The type. Raises ConfigError where nothing has chosen it: each role by itself might choose another."""
    if dtype == "auto":
        raise ConfigError(
            f"{setting} is auto, which `headwater up` replaces when it starts a run: set it to float32 or bfloat16, "
            "the same for every role"
        )
    return dtype


def _present[Device: str](setting: str, device: Device) -> Device:
    """The device. Raises ConfigError where it is not there, which no restart mends."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f"{setting} is cuda, but torch finds no GPU on this machine: see `nvidia-smi`, or set {setting} to cpu"
        )
    return device


ROLES: tuple[Role, ...] = (
    Role(name=RoleName.SOURCE, start=_source, stop_order=1, may_finish=True),
    Role(name=RoleName.SCHEDULER, start=_scheduler, stop_order=2),
    Role(
        name=RoleName.ROLLOUT,
        start=_rollout,
        stop_order=3,
        stop_seconds=30.0,
        modules=("torch", "transformers"),
        extra="rollout",
        processes=lambda config: config.engine.workers,
    ),
    Role(name=RoleName.DISPATCH, start=_dispatch, stop_order=4, modules=("faust",), extra="streams"),
    Role(
        name=RoleName.SANDBOX,
        start=_sandbox,
        stop_order=4,
        judges=True,
        modules=("faust",),
        extra="sandbox",
        processes=lambda config: config.grading.sandbox_workers,
    ),
    Role(name=RoleName.REWARD, start=_reward, stop_order=4, modules=("faust",), extra="streams"),
    Role(name=RoleName.COLLECT, start=_collect, stop_order=4, modules=("faust",), extra="streams"),
    Role(
        name=RoleName.LEARNER,
        start=_learner,
        command="learner",
        stop_order=5,
        stop_seconds=120.0,  # it saves a checkpoint first
        may_finish=True,
        modules=("torch", "transformers", "deepspeed"),
        extra="learner",
    ),
    Role(name=RoleName.RECORDER, start=_recorder, stop_order=6),
)


def role_called(name: str, among: Iterable[Role] = ROLES) -> Role:
    """Raises HeadwaterError, which names the nearest."""
    known = {role.name: role for role in among}
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {str(close[0])!r}?" if close else f"known: {', '.join(known)}"
    raise HeadwaterError(f"there is no role {name!r}; {hint}")


def role_of(process: str) -> Role:
    """The role of a process by its name: `rollout` of `rollout-2`."""
    base, dash, number = process.rpartition("-")
    return role_called(base if dash and number.isdecimal() else process)


def stop_order(processes: Iterable[str]) -> list[list[str]]:
    """Who of these ends after whom; those of one list together."""
    sets: dict[int, list[str]] = {}
    for process in processes:
        sets.setdefault(role_of(process).stop_order, []).append(process)
    return [sets[order] for order in sorted(sets)]
