"""`headwater up`: from a configuration to a finished run. The demo is the same with held-out evaluation around it.

lock the run directory → the model → a broker and topics → learner and hops → [evaluation] → sources
→ until the learner has ended every group → [evaluation] → everything ends in order → report
"""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, Container, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from headwater.client import Client
from headwater.config.load import write_config
from headwater.config.run_config import RunConfig
from headwater.errors import ConfigError, Interrupted
from headwater.files.phases import AFTER, BEFORE, TRAINING, phase
from headwater.files.positions import stored_of
from headwater.files.run_directory import RunDirectory
from headwater.look.display import Display
from headwater.look.observe import Observer
from headwater.look.scrape import scrape, total
from headwater.measure.held_out import evaluation_set
from headwater.measure.recorder import read_evaluations
from headwater.report.report import STAGES
from headwater.run.joining import publish_run
from headwater.run.models import model_directory
from headwater.run.roles import ROLES, role_called
from headwater.run.stack import Stack
from schemas import Progress, Prompt
from schemas.roles import RoleName
from schemas.topics import PROGRESS
from wire.kafka.events import readable
from wire.kafka.reading import end_offsets, read_topics
from wire.kafka.records import Place
from wire.kafka.settings import KafkaSettings
from wire.together import beside

BUSY_SECONDS = "headwater_busy_seconds_total"
MICRO_BATCH_SECONDS = "headwater_micro_batch_seconds"


async def run_up(
    config: RunConfig,
    directory: RunDirectory,
    settings: KafkaSettings | None,
    display: Display,
    *,
    elsewhere: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> None:
    """Run to the end of training. The caller holds the directory's lock; `notes` are its own, to be told and kept.

    `elsewhere`: roles that other machines run.

    Raises HeadwaterError: Interrupted after a clean stop by Ctrl-C, BrokerEnded, RoleFailed, …
    """
    check_elsewhere(elsewhere, config, settings)
    resume = f"Go on from the newest checkpoint with: headwater up --resume {directory.path}"
    async with _interrupts() as interrupts:
        display.enter(f"preparing the model {config.model}")
        model = await interrupts.unless(model_directory(config.model))
        display.enter("starting the roles" if settings else "starting the broker and the roles")
        stack = Stack(
            directory,
            settings=settings,
            prefix=config.broker.prefix,
            partitions=config.broker.partitions,
            replication=config.broker.replication,
            retention_bytes=config.broker.retention_bytes,
            domains={source.domain for source in config.data},
            allow_unenforced=config.grading.allow_unenforced,
            on_note=display.note,
        )
        interrupts.on_second = stack.kill
        for warning in config.dtype_warnings:
            display.note(warning)
        try:
            async with stack:
                directory.create()
                run = await publish_run(config, directory, stack.settings, model)
                write_config(config, directory.config)
                for note in notes:
                    display.note(note)
                observer = Observer(stack.settings, directory, config)
                try:
                    async with display.watching(observer, lambda: stack.supervisor.restarts):
                        training = _train(config, directory, stack, display, run.run_id, elsewhere)
                        await interrupts.unless(or_trouble(stack, training))
                        await _keep_stage_seconds(directory)
                        display.enter("stopping")
                        await stack.stop_roles()
                except Interrupted:
                    waits = await _learner_waits(directory)
                    display.enter(f"stopping in order{waits}; another Ctrl-C ends everything at once")
                    raise
        except Interrupted as error:
            raise Interrupted(f"stopped. {resume}") from error


async def _learner_waits(directory: RunDirectory) -> str:
    """What a stop waits for longest, in words; empty where no step was measured yet."""
    seconds = total(await scrape(directory.logs), MICRO_BATCH_SECONDS)
    return f": the learner finishes a micro-batch (about {max(1, round(seconds))} s) and saves" if seconds else ""


async def _keep_stage_seconds(directory: RunDirectory) -> None:
    """How long each hop had work in hand: its counters end with it, and the report speaks of them."""
    samples = await scrape(directory.logs)
    hops = {sample.labels["hop"] for sample in samples if sample.name == BUSY_SECONDS}
    seconds = {hop: round(total(samples, BUSY_SECONDS, hop=hop) or 0.0, 1) for hop in sorted(hops)}
    (directory.report / STAGES).write_text(json.dumps(seconds) + "\n")


async def _train(
    config: RunConfig, directory: RunDirectory, stack: Stack, display: Display, run_id: str, elsewhere: Sequence[str]
) -> None:
    told = await end_offsets(stack.settings, [PROGRESS.name])
    await stack.start_roles(*_names(config, {*elsewhere, RoleName.SOURCE}), run_id=run_id)
    if config.evaluation.before_and_after and not _evaluated(directory, epoch=0):
        display.enter(BEFORE)
        with phase(directory.phases, BEFORE):
            await _evaluate(evaluation_set(config, epoch=0), directory, stack.settings)
    display.enter(TRAINING)
    with phase(directory.phases, TRAINING):
        if RoleName.SOURCE not in elsewhere:
            await stack.start_roles(RoleName.SOURCE, run_id=run_id)
        if RoleName.LEARNER in elsewhere:
            await _told_as_finished(stack.settings, run_id, told)
        else:
            await stack.supervisor.finished(RoleName.LEARNER)
    if RoleName.LEARNER in elsewhere and (stored := stored_of(directory)) is not None:
        await asyncio.to_thread(stored.bring_home)
    if config.evaluation.before_and_after:
        display.enter(AFTER)
        with phase(directory.phases, AFTER):
            await _evaluate(evaluation_set(config, epoch=1), directory, stack.settings)


def check_elsewhere(elsewhere: Sequence[str], config: RunConfig, settings: KafkaSettings | None) -> None:
    """Raise ConfigError for a run that could never end so, or be reported."""
    for name in elsewhere:
        role_called(name)
    if RoleName.RECORDER in elsewhere:
        raise ConfigError("the recorder writes what the run's report reads, on this machine: it cannot be elsewhere")
    if elsewhere and settings is None:
        raise ConfigError(
            "--elsewhere needs a broker that other machines reach: give its --bootstrap (`headwater broker start "
            "--host ADDRESS` starts one)"
        )
    if RoleName.LEARNER in elsewhere and config.storage.url is None:
        raise ConfigError(
            "a learner elsewhere needs a place for weights and checkpoints that this machine reaches too: set "
            "storage.url"
        )


async def _told_as_finished(settings: KafkaSettings, run_id: str, start: Mapping[Place, int]) -> None:
    """Wait until the learner says, after `start`, that it has stopped for good."""
    async for record in read_topics(settings, [PROGRESS.name], follow=True, start=start):
        event = readable(record, PROGRESS)
        if isinstance(event, Progress) and event.run_id == run_id and event.finished:
            return


def _names(config: RunConfig, but: Container[str]) -> list[str]:
    """The names of the run's processes, readers before writers; prompts come when all is ready to be measured."""
    roles = sorted(ROLES, key=lambda role: -role.stop_order)
    return [name for role in roles if role.name not in but for name in role.names(role.processes(config))]


def _evaluated(directory: RunDirectory, epoch: int) -> bool:
    return any(line["epoch"] == epoch for line in read_evaluations(directory.evaluations))


async def _evaluate(prompts: Sequence[Prompt], directory: RunDirectory, settings: KafkaSettings) -> None:
    """Publish the prompts and wait until each group has ended; the recorder writes them down. Raises NotAnswered."""
    async with Client(settings=settings) as client:
        async for _ in client.evaluate(prompts, where=f"the logs are in {directory.logs}"):
            pass


async def or_trouble(stack: Stack, work: Coroutine[Any, Any, None]) -> None:
    """The work, unless what it needs breaks first. Raises that."""
    await beside(work, stack.trouble())


class _Interrupts:
    """Ctrl-C and SIGTERM: the first ends the run in order, the second at once."""

    def __init__(self) -> None:
        self.on_second: Any = None
        self._first = asyncio.Event()

    def arrived(self) -> None:
        if self._first.is_set() and self.on_second is not None:
            self.on_second()
        self._first.set()

    async def unless[T](self, work: Coroutine[Any, Any, T]) -> T:
        """The work's result. Raises Interrupted when the signal comes first; the work is cancelled then."""

        async def interrupted() -> None:
            await self._first.wait()
            raise Interrupted("stopped")

        return await beside(work, interrupted())


@asynccontextmanager
async def _interrupts() -> AsyncGenerator[_Interrupts]:
    loop = asyncio.get_running_loop()
    interrupts = _Interrupts()
    # `nohup` has SIGHUP ignored, and means it
    signals = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN or number != signal.SIGHUP
    ]
    for number in signals:
        loop.add_signal_handler(number, interrupts.arrived)
    try:
        yield interrupts
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
