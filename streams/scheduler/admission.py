"""The scheduler's decisions: which prompt is admitted next, what is cancelled, when the run is drained.

Pure: no clock, no I/O. Everything it knows comes from the log, so a new scheduler rebuilds it:

    generations  ─► rebuild, rebuilt      every group admitted so far: numbers, identities, what is open
    control      ─► restore_control       pauses (cancels of before were answered before)
    progress     ─► on_progress           what has ended
    evaluations  ─► on_evaluation         which evaluation groups have ended

Then the shell offers new events and again and again calls `admit`, publishes what it returns *in order,
each durable before the next* (or all in one transaction), calls `published`, and commits `floor`.
Numbers rise without gaps because of that order: a crash in between loses only the last ones, and the
next scheduler gives those numbers again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from schemas import (
    Cancel,
    CancelRequest,
    Drained,
    DrainReason,
    Event,
    Generation,
    Pause,
    PolicyVersion,
    Progress,
    Prompt,
    Purpose,
    Resume,
)
from schemas.ids import group_id, prompt_id
from schemas.topics import GENERATIONS
from streams.scheduler.numbers import Numbers, has_ended
from streams.scheduler.open_groups import OpenGroups
from streams.scheduler.prompt_lane import PromptLane, Waiting
from wire.kafka.records import Outgoing, Record

MIN_TRAIN_SAMPLES = 2
"""A group baseline needs two scorable members (or all, in smaller groups)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionConfig:
    """What the run says of admission."""

    run_id: str
    log_id: str
    partitions: int
    """Of `generations`."""
    batch_groups: int
    """B: groups an update."""
    max_staleness: int
    """η, in updates."""
    max_open_evaluations: int
    """Evaluation groups under way at once."""
    max_buffered_prompts: int = 64
    """A partition and lane."""
    sources: frozenset[tuple[str, str]] = frozenset()
    """(source, domain) of each task source of the run; when all have ended, the run drains. Empty: it never does."""


@dataclass(slots=True)
class _Pauses:
    run: bool = False
    domains: set[str] = field(default_factory=set[str])

    def apply(self, event: Pause | Resume) -> None:
        paused = isinstance(event, Pause)
        if event.domain is None:
            self.run = paused
        elif paused:
            self.domains.add(event.domain)
        else:
            self.domains.discard(event.domain)

    def admits(self, domain: str) -> bool:
        return not self.run and domain not in self.domains


class Admission:
    """The scheduler's state. `partition_of` maps a key to its partition of `generations`.

    Memory: prompts are buffered up to a bound; open groups are bounded by admission itself; a known
    identity is kept as long as its generation is on the log, which is what a new scheduler would know.
    """

    def __init__(self, config: AdmissionConfig, partition_of: Callable[[str], int]) -> None:
        self.duplicates_dropped = 0
        self.disk_full = False
        """Set from outside: nothing new, whatever people say of pauses."""
        self.train = PromptLane(Purpose.TRAIN, config.max_buffered_prompts)
        self.evaluate = PromptLane(Purpose.EVALUATE, config.max_buffered_prompts)
        self._config = config
        self._partition_of = partition_of
        self._known: dict[str, float] = {}
        """Group id -> when it was admitted, oldest first."""
        self._open = OpenGroups(config.run_id)
        self._rebuilt_numbers: set[int] = set()
        self._numbers = Numbers()
        self._progress: Progress | None = None
        self._newest_policy: PolicyVersion | None = None
        self._pauses = _Pauses()
        self._drained: dict[int, Drained] = {}

    # --- what a new scheduler reads first

    def rebuild(self, event: Event, record: Record) -> None:
        """Take in one record of `generations`, all of them from its beginning to its end."""
        if isinstance(event, Generation):
            self._known[event.group_id] = event.admitted_at
            if event.admission_number is not None:
                self._rebuilt_numbers.add(event.admission_number)
            self._open.add(event, record.partition)
        elif isinstance(event, Cancel):
            self._open.was_cancelled(event.group_id)
        elif isinstance(event, Drained):
            self._drained[record.partition] = event

    def rebuilt(self, progress: Progress | None) -> None:
        """`generations` has been read to its end; `progress` is the newest one on the log, if any."""
        if progress is not None:
            self.on_progress(progress)
        self._numbers.rebuild(self._rebuilt_numbers, max(self._rebuilt_numbers, default=-1), self._progress)
        self._rebuilt_numbers = set()
        self._known = dict(sorted(self._known.items(), key=lambda known: known[1]))

    def restore_control(self, event: Event) -> None:
        """One record of `control` below the committed offset: pauses hold on, cancels were answered."""
        if isinstance(event, Pause | Resume) and self._is_ours(event):
            self._pauses.apply(event)

    # --- what comes later

    def on_control(self, event: Event) -> None:
        """One new record of `control`."""
        if not self._is_ours(event):
            return
        if isinstance(event, Pause | Resume):
            self._pauses.apply(event)
        elif isinstance(event, CancelRequest):
            self._open.cancel(event)

    def on_progress(self, event: Progress) -> None:
        """The newest of the highest incarnation counts, whether it says more than before or less (a resume)."""
        if event.log_id != self._config.log_id or not self._is_ours(event):
            return
        if self._progress is not None and event.incarnation < self._progress.incarnation:
            return
        self._progress = event
        if event.weights is not None:  # this may be read before the update itself: topics are not ordered
            self.on_weights(event.weights)
        self._open.end_numbers(lambda number: has_ended(event, number))

    def on_evaluation(self, key: str) -> None:
        """An evaluation group has ended."""
        self._open.end(key)

    def on_weights(self, version: PolicyVersion) -> None:
        """A policy version was published: new groups name the newest."""
        if self._newest_policy is None or version > self._newest_policy:
            self._newest_policy = version

    # --- the decision

    @property
    def admitted(self) -> int:
        """Train groups admitted in this log."""
        return self._numbers.given

    @property
    def outstanding(self) -> int:
        """Train groups admitted and not ended, as far as the learner has said."""
        ended = self._progress.ended_low + len(self._progress.ended_above) if self._progress else 0
        return self.admitted - ended

    @property
    def finished(self) -> bool:
        """The learner has stopped for good."""
        return self._progress is not None and self._progress.finished

    def admit(self, now: float, rollouts_end: Mapping[int, int]) -> list[Outgoing]:
        """Everything to publish now, in order. `now`: Unix seconds.

        `rollouts_end`: end offset of each partition of `rollouts`, as read at some time before this call.
        """
        self._forget(now)
        outs: list[Outgoing] = []
        if self._progress is not None:  # the learner says first what has ended, also in earlier logs
            outs = self._close_run() if self._progress.closing else self._admit_train(now, rollouts_end)
        outs += self._admit_evaluations(now, rollouts_end)
        return self._open.take_cancels() + outs

    def published(self) -> None:
        """All that `admit` has returned so far is durable."""
        self.train.published()
        self.evaluate.published()

    def _admit_train(self, now: float, rollouts_end: Mapping[int, int]) -> list[Outgoing]:
        outs: list[Outgoing] = []
        while not self._sources_drained() and self.outstanding < self._bound():
            waiting = self._take_new(self.train)
            if waiting is None:
                break
            outs.append(self._generation(waiting, now, rollouts_end, self._numbers.take(), None))
        if self._sources_drained() or (self._config.sources and self._config.sources <= self.train.ended):
            outs += self._drain(DrainReason.SOURCES_ENDED)
        return outs

    def _admit_evaluations(self, now: float, rollouts_end: Mapping[int, int]) -> list[Outgoing]:
        outs: list[Outgoing] = []
        while self._newest_policy is not None and self._open.evaluations < self._config.max_open_evaluations:
            waiting = self._take_new(self.evaluate)
            if waiting is None:
                break
            outs.append(self._generation(waiting, now, rollouts_end, None, self._newest_policy))
        return outs

    def _close_run(self) -> list[Outgoing]:
        self._open.cancel_training()
        return self._drain(DrainReason.SOURCES_ENDED if self._sources_drained() else DrainReason.RUN_ENDED)

    def _drain(self, reason: DrainReason) -> list[Outgoing]:
        """Tell each partition that was not told yet. The cancels made so far go before."""
        cancels = self._open.take_cancels()
        config = self._config
        assert self._progress is not None
        drained = Drained(
            run_id=config.run_id,
            log_id=config.log_id,
            admitted=self.admitted,
            reason=reason,
            incarnation=self._progress.incarnation if reason == DrainReason.RUN_ENDED else 0,
        )
        untold = [p for p in range(config.partitions) if not _says(self._drained.get(p), drained)]
        self._drained.update(dict.fromkeys(untold, drained))
        return cancels + [Outgoing(GENERATIONS.name, config.run_id, drained, partition) for partition in untold]

    def _sources_drained(self) -> bool:
        """Whether a partition has been told so: then it stays so, whatever is published later."""
        return any(drained.reason == DrainReason.SOURCES_ENDED for drained in self._drained.values())

    def _take_new(self, lane: PromptLane) -> Waiting | None:
        """The next prompt whose identity was never admitted."""
        if self.disk_full:
            return None
        while (waiting := lane.take(self._pauses.admits)) is not None:
            if self._group_id(waiting) not in self._known and not self._source_has_ended(waiting.prompt):
                return waiting
            self.duplicates_dropped += 1
        return None

    def _source_has_ended(self, prompt: Prompt) -> bool:
        """Whether the learner ended this task in an earlier log."""
        if prompt.source is None or prompt.purpose != Purpose.TRAIN or self._progress is None:
            return False
        progress = self._progress.sources.get(prompt.source.source)
        return progress is not None and (prompt.source.index < progress.low or prompt.source.index in progress.above)

    def _generation(
        self,
        waiting: Waiting,
        now: float,
        rollouts_end: Mapping[int, int],
        number: int | None,
        version: PolicyVersion | None,
    ) -> Outgoing:
        prompt, key = waiting.prompt, self._group_id(waiting)
        partition = self._partition_of(key)
        prompt_topic, prompt_partition = waiting.place
        generation = Generation(
            run_id=self._config.run_id,
            purpose=prompt.purpose,
            trace_id=prompt.trace_id or key,
            group_id=key,
            log_id=self._config.log_id,
            admission_number=number,
            prompt_id=self._prompt_id(waiting),
            domain=prompt.domain,
            epoch=prompt.epoch,
            messages=prompt.messages,
            token_ids=prompt.token_ids,
            grader=prompt.grader,
            num_samples=prompt.group_size,
            min_samples=min(MIN_TRAIN_SAMPLES, prompt.group_size) if prompt.purpose == Purpose.TRAIN else 1,
            sampling=prompt.sampling,
            admitted_at=now,
            deadline_seconds=prompt.deadline_seconds,
            prompt_topic=prompt_topic,
            prompt_partition=prompt_partition,
            prompt_offset=waiting.offset,
            rollouts_end_offset=rollouts_end[partition],
            policy_version=version,
            least_policy_version=self._newest_policy if number is not None else None,
            source=prompt.source,
            metadata=prompt.metadata,
        )
        self._known[key] = now
        self._open.add(generation, partition)
        return Outgoing(GENERATIONS.name, key, generation, partition)

    def _forget(self, now: float) -> None:
        assert GENERATIONS.retention_seconds is not None
        while self._known:
            oldest = next(iter(self._known))
            if self._known[oldest] + GENERATIONS.retention_seconds >= now:
                break
            del self._known[oldest]
        self._open.forget_late_evaluations(now)

    def _bound(self) -> int:
        return (self._config.max_staleness + 1) * self._config.batch_groups

    def _is_ours(self, event: Event) -> bool:
        return event.run_id in ("", self._config.run_id)

    def _prompt_id(self, waiting: Waiting) -> str:
        topic, partition = waiting.place
        return waiting.prompt.id or prompt_id(self._config.log_id, topic, partition, waiting.offset)

    def _group_id(self, waiting: Waiting) -> str:
        prompt = waiting.prompt
        return group_id(self._config.run_id, prompt.domain, self._prompt_id(waiting), prompt.epoch)


def _says(told: Drained | None, drained: Drained) -> bool:
    """Equal in what counts: it may have been written by another release."""
    return told is not None and (told.admitted, told.reason, told.incarnation) == (
        drained.admitted,
        drained.reason,
        drained.incarnation,
    )
