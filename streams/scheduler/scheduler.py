"""The scheduler: prompts in, admitted work out. One at a time; everything it knows is on the log.

    prompts.* ──► two lanes ──┐
    control, progress ────────┼──► Admission (pure) ──► generations, durable ──► prompt offsets committed
    evaluations, weights ─────┘

It starts by reading `generations` from the beginning, so that no identity is admitted twice; a prompt
that is read again after a crash is known by then.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from schemas import CancelRequest, Event, LogIdentity, Pause, Progress, Resume, WeightUpdate
from schemas.base import PolicyVersion
from schemas.topics import CONTROL, EVALUATIONS, GENERATIONS, PROGRESS, PROMPTS_PREFIX, ROLLOUTS, WEIGHTS
from streams.scheduler.admission import Admission, AdmissionConfig
from streams.scheduler.lock import sole_scheduler
from streams.scheduler.prompt_reader import PromptIntake, PromptReader
from streams.scheduler.rebuild import Resumed, rebuild
from wire.hop.hop import Hop
from wire.hop.inflight import Journal
from wire.hop.processor import Processor
from wire.kafka.clients import partition_of
from wire.kafka.committed_offsets import CommittedOffsets
from wire.kafka.disk import LOOK_SECONDS, read_shortage
from wire.kafka.log_reader import LogReader
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing, Record
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.kafka.topics import existing_topics, read_log_id
from wire.metrics import Metrics
from wire.together import beside

log = logging.getLogger(__name__)

NAME = "scheduler"
EVALUATIONS_NAME = "scheduler-evaluations"
"""The consumer group of the evaluation lane."""
DISCOVERY_SECONDS = 2.0
"""How soon a new domain is found."""
IDLE_SECONDS = 0.5
"""At the latest so often it decides again, although nothing came: deadlines pass by themselves."""
ROLLOUTS_END_SECONDS = 2.0
"""A generation may carry an end offset of `rollouts` this old: a takeover then scans a little more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """What a scheduler is told."""

    run_id: str
    run_directory: Path
    """Holds the lock `scheduler.lock` and the journal."""
    batch_groups: int
    """B: groups an update."""
    max_staleness: int
    """η: updates that a group's oldest token may lag."""
    max_open_evaluations: int
    """Evaluation groups under way at once."""
    min_free_bytes: int = 0
    """With less left on the brokers' disk nothing is admitted."""
    sources: frozenset[tuple[str, str]] = frozenset()
    """(source, domain) of each task source of the run: when all have ended, the run drains. Empty: it never does."""


async def run_scheduler(
    config: SchedulerConfig, settings: KafkaSettings, metrics: Metrics, stop: asyncio.Event
) -> None:
    """Admit until `stop` is set. A second one in the run directory stands by until the first dies.

    Raises LogUnidentified before `topics apply`, and StopWorker: BrokerUnreachable, UpgradeFirst,
    StoredOffsetOutOfRange, or Fenced when a scheduler on another machine has taken over.
    """
    async with sole_scheduler(config.run_directory / "scheduler.lock", stop) as held:
        if held:
            async with _scheduler(config, settings, metrics) as scheduler:
                await scheduler.run(stop)


@asynccontextmanager
async def _scheduler(config: SchedulerConfig, settings: KafkaSettings, metrics: Metrics) -> AsyncGenerator["Scheduler"]:
    log_id = await read_log_id(settings)
    async with AsyncExitStack() as stack:
        # first of all: from here on an older scheduler can publish no more
        publisher = await stack.enter_async_context(Publisher(settings, NAME, settings.name(NAME)))
        reader = await stack.enter_async_context(LogReader(settings))
        offsets = await stack.enter_async_context(CommittedOffsets(settings, NAME))
        evaluation_offsets = await stack.enter_async_context(CommittedOffsets(settings, EVALUATIONS_NAME))
        partitions = await reader.partitions(GENERATIONS.name)
        admission = Admission(
            AdmissionConfig(
                run_id=config.run_id,
                log_id=log_id,
                partitions=partitions,
                batch_groups=config.batch_groups,
                max_staleness=config.max_staleness,
                max_open_evaluations=config.max_open_evaluations,
                sources=config.sources,
            ),
            partition_of=lambda key: partition_of(key, partitions),
        )
        resumed = await rebuild(admission, reader, partitions, await offsets.read((CONTROL.name, 0)))
        log.info("log %s: %d train groups admitted, %d outstanding", log_id, admission.admitted, admission.outstanding)
        journal = Journal(config.run_directory / "state" / NAME)
        yield Scheduler(
            SchedulerParts(
                settings=settings,
                metrics=metrics,
                admission=admission,
                resumed=resumed,
                publisher=publisher,
                reader=reader,
                journal=journal,
                offsets=offsets,
                evaluation_offsets=evaluation_offsets,
                partitions=partitions,
                min_free_bytes=config.min_free_bytes,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerParts:
    """What a scheduler works with, each of it started."""

    settings: KafkaSettings
    metrics: Metrics
    admission: Admission
    resumed: Resumed
    publisher: Publisher
    reader: LogReader
    journal: Journal
    offsets: CommittedOffsets
    """Of the train lane, and of `control`."""
    evaluation_offsets: CommittedOffsets
    partitions: int
    """Of `generations` and `rollouts`."""
    min_free_bytes: int


class Scheduler:
    """The shell around Admission: readers that feed it, and one loop that publishes what it decides."""

    def __init__(self, parts: SchedulerParts) -> None:
        self._settings = parts.settings
        self._min_free_bytes = parts.min_free_bytes
        self._metrics = parts.metrics
        self._admission = parts.admission
        self._resumed = parts.resumed
        self._publisher = parts.publisher
        self._reader = parts.reader
        self._offsets = parts.offsets
        self._partitions = parts.partitions
        self._changed = asyncio.Event()
        self._control_next = parts.resumed.control
        self._rollouts_end: dict[int, int] = {}
        self._rollouts_end_at = -ROLLOUTS_END_SECONDS
        self._processor = Processor(_StateIntake(parts.admission), parts.publisher, parts.journal, parts.metrics)
        self._prompts = [
            PromptReader(
                parts.settings,
                lane,
                Processor(PromptIntake(name, lane), parts.publisher, parts.journal, parts.metrics),
                lane_offsets,
                parts.reader,
                self._changed.set,
            )
            for name, lane, lane_offsets in (
                (NAME, parts.admission.train, parts.offsets),
                (EVALUATIONS_NAME, parts.admission.evaluate, parts.evaluation_offsets),
            )
        ]

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set or one part fails."""
        await self._look_at_disk()
        await beside(
            stop.wait(),
            self._discover(),
            self._watch_disk(),
            self._follow_state(),
            *(prompts.run() for prompts in self._prompts),
            self._decide(),
        )

    async def _discover(self) -> None:
        """New domains: their topics come while we run."""
        while True:
            found = await existing_topics(self._settings)
            topics = {name: count for name, count in found.items() if name.startswith(PROMPTS_PREFIX)}
            for prompts in self._prompts:
                prompts.follow(topics)
            await asyncio.sleep(DISCOVERY_SECONDS)

    async def _watch_disk(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look_at_disk()

    async def _look_at_disk(self) -> None:
        """Before a broker's disk is full and it dies, nothing new is begun; retention makes room."""
        shortage = await read_shortage(self._settings, self._min_free_bytes)
        if bool(shortage) != self._admission.disk_full:
            log.warning(shortage or "there is room on the broker's disk again: admission goes on")
            self._admission.disk_full = bool(shortage)
            self._changed.set()

    async def _follow_state(self) -> None:
        """What people and the learner say."""
        async with Tail(self._settings, self._resumed.positions()) as tail:
            while True:
                records = await tail.poll()
                for record in records:
                    if record.topic == EVALUATIONS.name:
                        self._admission.on_evaluation(record.key or "")
                    else:
                        await self._processor.process(record)
                    if record.topic == CONTROL.name:
                        self._control_next = record.offset + 1
                if records:
                    self._changed.set()

    async def _decide(self) -> None:
        """Admit, publish, and only then commit: again whenever something came."""
        while True:
            self._changed.clear()
            await self._read_rollouts_end()
            control_next = self._control_next
            duplicates = self._admission.duplicates_dropped
            outs = self._admission.admit(time.time(), self._rollouts_end)
            self._metrics.duplicates_dropped.labels(NAME).inc(self._admission.duplicates_dropped - duplicates)
            await self._publish(outs)
            self._admission.published()
            for prompts in self._prompts:
                await prompts.commit()
            await self._offsets.commit({(CONTROL.name, 0): control_next})
            self._metrics.groups_outstanding.set(self._admission.outstanding)
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._changed.wait()

    async def _publish(self, outs: Sequence[Outgoing]) -> None:
        """In one transaction: admission numbers have no gaps after a crash."""
        await self._publisher.send_all(outs)
        for out in outs:
            self._metrics.events_out.labels(NAME, out.topic).inc()

    async def _read_rollouts_end(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._rollouts_end_at < ROLLOUTS_END_SECONDS:
            return
        for partition in range(self._partitions):
            self._rollouts_end[partition] = await self._reader.end_offset(ROLLOUTS.name, partition)
        self._rollouts_end_at = now


class _StateIntake(Hop[CancelRequest | Pause | Resume | Progress | LogIdentity | WeightUpdate]):
    """Offers control, progress and weights to the Admission."""

    name = NAME
    topics = (CONTROL, PROGRESS, WEIGHTS)

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def handle(self, event: Event, record: Record) -> Sequence[Outgoing]:
        if isinstance(event, Progress):
            self._admission.on_progress(event)
        elif isinstance(event, WeightUpdate):
            self._admission.on_weights(PolicyVersion(event.incarnation, event.version))
        else:
            self._admission.on_control(event)
        return ()
