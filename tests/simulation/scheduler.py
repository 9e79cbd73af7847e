"""The scheduler: the real Admission, rebuilt from the log at every start."""

from collections import deque

from schemas import GroupDropped, PolicyVersion, Progress, Trajectory, WeightUpdate
from streams.scheduler.admission import Admission, AdmissionConfig
from streams.scheduler.prompt_lane import PromptLane
from tests.simulation.log import record
from tests.simulation.world import RUN, Move, Role, World
from wire.kafka.records import Outgoing

DOMAINS = ("math", "code")
MAX_BUFFERED = 3
_INPUTS = ("progress", "control", "evaluations", "weights")
_LANES = tuple(f"{lane}:prompts.{domain}" for lane in ("train", "evaluate") for domain in DOMAINS)
_SPLIT = {name: name.rpartition(":") for name in (*_INPUTS, *_LANES)}


class SchedulerRole(Role):
    """A singleton. `down` until it has read the log."""

    name = "scheduler"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.crash()

    def crash(self) -> None:
        self.admission: Admission | None = None
        self._outs: deque[Outgoing] = deque()
        self._control_answered = 0
        self._uncommitted = False

    @property
    def progress_read(self) -> Progress | None:
        """The newest of the highest incarnation that it has read: the oracle's own count."""
        events = self.world.log.events("progress")[: self._positions["progress", 0]]
        best: Progress | None = None
        for event in events:
            if isinstance(event, Progress) and (best is None or event.incarnation >= best.incarnation):
                best = event
        return best

    def moves(self) -> list[Move]:
        if self.admission is None:
            return [self._start]
        if self._outs:
            return [self._publish]
        moves: list[Move] = []
        ready = [key for key in self._positions if self._wants(key)]
        if ready:
            moves += [lambda: self._read(*self.rng.choice(ready))] * 3
        if self._changed:
            moves += [self._admit] * 2
        if self._uncommitted:
            moves.append(self._commit)
        return moves

    def _start(self) -> None:
        log, setting = self.world.log, self.world.setting
        self._positions: dict[tuple[str, int], int] = {}
        ends_with_sources = setting.max_updates is None
        self.admission = admission = Admission(
            AdmissionConfig(
                run_id=RUN, log_id=log.log_id, partitions=setting.partitions, batch_groups=setting.batch_groups,
                max_staleness=setting.max_staleness, max_open_evaluations=2, max_buffered_prompts=MAX_BUFFERED,
                sources=frozenset({("source", domain) for domain in DOMAINS}) if ends_with_sources else frozenset(),
            ),
            log.partition_of,
        )  # fmt: skip
        for partition, offset, event in log.all("generations"):
            admission.rebuild(event, record("generations", partition, offset))
        newest: Progress | None = None
        for event in log.events("progress"):
            if isinstance(event, Progress) and (newest is None or event.incarnation >= newest.incarnation):
                newest = event
        admission.rebuilt(newest)
        self._positions["progress", 0] = log.end("progress", 0)
        committed = log.committed[self.name, "control", 0]
        for event in log.events("control")[:committed]:
            admission.restore_control(event)
        self._positions["control", 0] = self._control_answered = committed
        self._positions["evaluations", 0] = self._positions["weights", 0] = 0
        for domain in DOMAINS:
            for lane in ("train", "evaluate"):
                place = (f"prompts.{domain}", 0)
                self._positions[f"{lane}:{place[0]}", 0] = log.committed[self._group(lane), *place]
        self._changed = True
        self.tell("start", admission.admitted, admission.outstanding)

    def _group(self, lane: str) -> str:
        return f"{self.name}-{lane}"

    def _wants(self, key: tuple[str, int]) -> bool:
        lane, _, topic = _SPLIT[key[0]]
        if self._positions[key] >= self.world.log.end(topic, 0):
            return False
        return not lane or self._lane(lane).wants((topic, 0))

    def _lane(self, lane: str) -> PromptLane:
        assert self.admission is not None
        return self.admission.train if lane == "train" else self.admission.evaluate

    def _read(self, name: str, partition: int) -> None:
        assert self.admission is not None
        lane, _, topic = _SPLIT[name]
        offset = self._positions[name, partition]
        self._positions[name, partition] += 1
        event = self.world.log.events(topic, 0)[offset]
        if lane:
            self._lane(lane).offer(event, record(topic, 0, offset))
            self._uncommitted = True
        elif topic == "control":
            self.admission.on_control(event)
        elif isinstance(event, Progress):
            self.admission.on_progress(event)
        elif isinstance(event, Trajectory | GroupDropped):
            self.admission.on_evaluation(event.group_id)
        elif isinstance(event, WeightUpdate):
            self.admission.on_weights(PolicyVersion(event.incarnation, event.version))
        self._changed = True

    def _admit(self) -> None:
        assert self.admission is not None
        log = self.world.log
        self._changed = False
        control = self._positions["control", 0]
        ends = {p: max(0, log.end("rollouts", p) - self.rng.randint(0, 2)) for p in range(log.partitions)}
        self._outs.extend(self.admission.admit(self.world.now, ends))
        self._control_answered = control
        self._uncommitted = True
        # one transaction: nothing comes between them
        while len(self._outs) > 1:
            self.world.publish(self, self._outs.popleft(), exact=True)
        if not self._outs:
            self.admission.published()

    def _publish(self) -> None:
        assert self.admission is not None
        self.world.publish(self, self._outs.popleft(), exact=True)
        if not self._outs:
            self.admission.published()

    def _commit(self) -> None:
        self._uncommitted = False
        self.world.commit(self, "control", 0, self._control_answered)
        for lane in ("train", "evaluate"):
            for place in self._lane(lane).places():
                reader = _Reader(self, self._group(lane))
                self.world.commit(reader, *place, self._lane(lane).floor(place))


class _Reader(Role):
    """The scheduler under the consumer group of one lane."""

    def __init__(self, scheduler: SchedulerRole, name: str) -> None:
        super().__init__(scheduler.world)
        self.name = name

    def moves(self) -> list[Move]:
        return []

    def crash(self) -> None: ...
