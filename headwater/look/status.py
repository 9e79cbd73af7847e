"""`headwater status`: where the stream stands, asked of the broker alone, so that it works from any machine."""

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import Any

from headwater.look.view import StageView
from schemas import Generation, Progress, RoleName, WeightUpdate
from schemas.topics import GENERATIONS, PROGRESS, PROMPTS_PREFIX, RUNS, WEIGHTS, first_reader, read_by, topic_spec
from wire.kafka.disk import MIN_FREE_BYTES, Disk, read_bound, read_disk
from wire.kafka.events import glance
from wire.kafka.lag import group_lag
from wire.kafka.reading import end_offsets, read_topics
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import existing_topics, read_log_id

RATE_SECONDS = 2.0
"""Rates are measured over this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the broker says."""

    bootstrap: str
    prefix: str
    log_id: str
    run_id: str
    policy_version: str | None
    update: int | None
    closing: bool
    finished: bool
    groups_admitted: int
    """Train groups, on this log."""
    groups_outstanding: int | None
    """Admitted and not ended; None: no learner has told yet."""
    outcomes: dict[str, int]
    progress_age_seconds: float | None
    newest_sampled_version: str | None
    staleness_updates: int | None
    """Updates that the newest published weights lag behind the learner."""
    dead_letters: int
    disk: Disk | None
    """Of the fullest broker; None where brokers do not tell."""
    bound_bytes: int | None
    """The most that the topics of `wire.kafka.topics.BULKY` take; None: they are not bounded."""
    min_free_bytes: int
    """With less left nothing is admitted."""
    stages: tuple[StageView, ...]

    @property
    def alarms(self) -> list[str]:
        """What somebody must act on."""
        shortage = self.disk.shortage(self.min_free_bytes) if self.disk else ""
        return [
            *([shortage] if shortage else []),
            *(self._late),
        ]

    @property
    def _late(self) -> list[str]:
        return [
            f"{stage.topic}: the oldest event that {stage.reader} has not read is {stage.oldest_seconds:.0f} s old, "
            f"more than half of what the topic keeps ({stage.retention_seconds} s): start {stage.reader} workers"
            for stage in self.stages
            if stage.alarm
        ]

    def as_json(self) -> dict[str, Any]:
        stages = [{**asdict(stage), "alarm": stage.alarm} for stage in self.stages]
        values = {name: getattr(self, name) for name in self.__slots__ if name not in ("stages", "disk")}
        disk = self.disk._asdict() if self.disk else None
        return {**values, "disk": disk, "stages": stages, "alarms": self.alarms}


async def read_status(settings: KafkaSettings) -> Status:
    """Takes some seconds: rates are measured. Raises BrokerUnreachable, LogUnidentified."""
    log_id = await read_log_id(settings)
    topics = await existing_topics(settings)
    before = await end_offsets(settings, topics)
    started = time.monotonic()
    progress, weights = await newest_progress(settings), await newest_weight_update(settings)
    admitted = len(await admitted_numbers(settings, progress.run_id if progress else None))
    stages = await _stages(settings, topics)
    await asyncio.sleep(max(0.0, RATE_SECONDS - (time.monotonic() - started)))
    after = await end_offsets(settings, topics)
    seconds = time.monotonic() - started
    grown: dict[str, int] = {}
    for (topic, partition), end in after.items():
        grown[topic] = grown.get(topic, 0) + end - before.get((topic, partition), end)
    ended = progress.ended_low + len(progress.ended_above) if progress and progress.log_id == log_id else None
    return Status(
        bootstrap=settings.bootstrap,
        prefix=settings.prefix,
        log_id=log_id,
        run_id=progress.run_id if progress else "",
        policy_version=f"{progress.incarnation}.{progress.version}" if progress else None,
        update=progress.version if progress else None,
        closing=bool(progress and progress.closing),
        finished=bool(progress and progress.finished),
        groups_admitted=admitted,
        groups_outstanding=None if ended is None else max(0, admitted - ended),
        outcomes=progress.outcomes if progress else {},
        progress_age_seconds=round(time.time() - progress.updated_at, 1) if progress else None,
        newest_sampled_version=f"{weights.incarnation}.{weights.version}" if weights else None,
        staleness_updates=max(0, progress.version - weights.version) if progress and weights else None,
        dead_letters=sum(end for (topic, _), end in after.items() if topic == "dead-letters"),
        disk=await read_disk(settings),
        bound_bytes=await read_bound(settings),
        min_free_bytes=await _min_free_bytes(settings),
        stages=tuple(_with_rate(stage, grown.get(stage.topic, 0) / seconds) for stage in stages),
    )


def _with_rate(stage: StageView, rate: float) -> StageView:
    from dataclasses import replace

    return replace(stage, rate=round(rate, 2))


async def _stages(settings: KafkaSettings, topics: dict[str, int]) -> list[StageView]:
    prompts = tuple(sorted(topic for topic in topics if topic.startswith(PROMPTS_PREFIX)))
    stages: list[StageView] = []
    for hop in RoleName:
        read = read_by(hop) if hop != first_reader(PROMPTS_PREFIX) else (*prompts, *read_by(hop))
        for lag in await group_lag(settings, hop, read):
            stages.append(
                StageView(
                    topic=lag.topic,
                    reader=hop,
                    total=lag.end,
                    lag=lag.events,
                    oldest_seconds=round(lag.oldest_age_seconds, 1) if lag.events else None,
                    retention_seconds=topic_spec(lag.topic).retention_seconds,
                )
            )
    return stages


async def _min_free_bytes(settings: KafkaSettings) -> int:
    """What the run says that was started last."""
    least = MIN_FREE_BYTES
    async for record in read_topics(settings, [RUNS.name]):
        run = glance(record, RUNS)
        if run is not None:
            least = run.config.get("broker", {}).get("min_free_bytes", least)
    return least


async def newest_progress(settings: KafkaSettings) -> Progress | None:
    """What the learner of the highest incarnation told last; None before any has."""
    newest: Progress | None = None
    async for record in read_topics(settings, [PROGRESS.name]):
        event = glance(record, PROGRESS)
        if isinstance(event, Progress) and (newest is None or event.incarnation >= newest.incarnation):
            newest = event
    return newest


async def newest_weight_update(settings: KafkaSettings) -> WeightUpdate | None:
    """The policy that readers of `weights` go over to; None when none was ever published."""
    newest: WeightUpdate | None = None
    async for record in read_topics(settings, [WEIGHTS.name]):
        event = glance(record, WEIGHTS)
        if event is not None and (
            newest is None or (event.incarnation, event.version) >= (newest.incarnation, newest.version)
        ):
            newest = event
    return newest


async def admitted_numbers(settings: KafkaSettings, run_id: str | None) -> set[int]:
    """The admission numbers on this log; `run_id` None: of any run."""
    numbers: set[int] = set()
    async for record in read_topics(settings, [GENERATIONS.name]):
        event = glance(record, GENERATIONS)
        if isinstance(event, Generation) and event.admission_number is not None and run_id in (None, event.run_id):
            numbers.add(event.admission_number)
    return numbers
