"""The rollout worker: the real plan around a sampler whose tokens are new at every attempt."""

from schemas import Cancel, Generation, PolicyVersion, Purpose, Rollout, UnscorableReason, WeightUpdate
from streams.rollout.engines.base import Completion, Span
from streams.rollout.plan import is_too_late, remaining_samples, rollout_of, unscorable_rollout
from tests.simulation.world import Move, Role, World
from wire.hop.watermark import Watermark
from wire.kafka.records import Outgoing

MAX_JOBS = 3


class _Job:
    def __init__(self, generation: Generation, partition: int, offset: int, remaining: list[int]) -> None:
        self.generation = generation
        self.partition = partition
        self.offset = offset
        self.remaining = remaining


class RolloutRole(Role):
    """A consumer group of workers, one a partition, that share loaded weights only in name: each lags on its own."""

    name = "rollout"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.crash()

    def moves(self) -> list[Move]:
        log = self.world.log
        moves: list[Move] = []
        newest = self._newest()
        if newest != self._loaded:
            moves.append(self._load)
        if len(self._jobs) < MAX_JOBS:
            ready = [p for p, position in self._positions.items() if position < log.end("generations", p)]
            if ready:
                moves.append(lambda: self._read(self.rng.choice(ready)))
        ready_jobs = [job for job in self._jobs if self._can_go_on(job)]
        if ready_jobs:
            moves += [lambda: self._go_on(self.rng.choice(ready_jobs))] * 3
        for partition, watermark in self._watermarks.items():
            committable = watermark.committable()
            if committable is not None and committable > log.committed[self.name, "generations", partition]:
                moves.append(lambda p=partition: self._commit(p))
        return moves

    def crash(self) -> None:
        self._jobs: list[_Job] = []
        self._loaded: PolicyVersion | None = None
        self._newest_seen: PolicyVersion | None = None
        self._weights_seen = 0
        self._positions: dict[int, int] = {}
        self._assigned_ends: dict[int, int] = {}
        self._watermarks: dict[int, Watermark] = {}
        for partition in range(self.world.setting.partitions):
            self._assign(partition)

    def rebalance(self) -> None:
        """The old owner finishes and publishes what it samples, and commits nothing."""
        partition = self.rng.randrange(self.world.setting.partitions)
        for job in self._jobs:
            if job.partition == partition:
                job.partition = -1
        self._assign(partition)

    def _assign(self, partition: int) -> None:
        log = self.world.log
        self._positions[partition] = log.committed[self.name, "generations", partition]
        self._assigned_ends[partition] = log.end("generations", partition)
        self._watermarks[partition] = Watermark()

    def _newest(self) -> PolicyVersion | None:
        for event in self.world.log.events("weights")[self._weights_seen :]:
            assert isinstance(event, WeightUpdate)
            self._weights_seen += 1
            version = PolicyVersion(event.incarnation, event.version)
            self._newest_seen = max(version, self._newest_seen or version)
        return self._newest_seen

    def _load(self) -> None:
        self._loaded = self._newest()

    def _read(self, partition: int) -> None:
        log = self.world.log
        offset = self._positions[partition]
        self._positions[partition] += 1
        self._watermarks[partition].delivered(offset)
        event = log.events("generations", partition)[offset]
        if isinstance(event, Generation):
            remaining = list(range(event.num_samples))
            if offset < self._assigned_ends[partition]:  # another may have begun it
                found: dict[str, set[int]] = {}
                for rollout in log.events("rollouts", partition)[event.rollouts_end_offset :]:
                    assert isinstance(rollout, Rollout)
                    found.setdefault(rollout.group_id, set()).add(rollout.sample_index)
                remaining = remaining_samples(event, found)
            self._jobs.append(_Job(event, partition, offset, remaining))
            return
        if isinstance(event, Cancel):
            for job in self._jobs:
                if job.generation.group_id == event.group_id:
                    job.remaining = []
        self._watermarks[partition].done(offset)

    def _can_go_on(self, job: _Job) -> bool:
        return not job.remaining or self._loaded is not None or is_too_late(job.generation, self.world.now)

    def _go_on(self, job: _Job) -> None:
        if is_too_late(job.generation, self.world.now):
            job.remaining = []
        if not job.remaining:
            self._jobs.remove(job)
            if job.partition >= 0:
                self._watermarks[job.partition].done(job.offset)
            return
        index = self.rng.choice(job.remaining)
        job.remaining.remove(index)
        self.world.publish(self, self._sample(job, index))

    def _sample(self, job: _Job, index: int) -> Outgoing:
        generation = job.generation
        if generation.metadata.get("too_long"):
            return unscorable_rollout(generation, job.offset, index, UnscorableReason.TOO_LONG)
        if self.world.odds(0.01):
            return unscorable_rollout(generation, job.offset, index, UnscorableReason.POISONED)
        assert self._loaded is not None
        version = generation.policy_version if generation.purpose == Purpose.EVALUATE else self._loaded
        assert version is not None
        spans = [Span([self.rng.getrandbits(30)], [-1.0], *version)]
        if generation.purpose == Purpose.TRAIN and self.rng.random() < 0.2 and (newest := self._newest()):
            self._loaded = newest
            spans.append(Span([self.rng.getrandbits(30)], [-1.0], *newest))
        text = str(self.rng.getrandbits(1))
        return rollout_of(generation, job.offset, [1, 2], Completion(generation.group_id, index, spans, text, "stop"))

    def _commit(self, partition: int) -> None:
        self.world.commit(self, "generations", partition, self._watermarks[partition].committable())
