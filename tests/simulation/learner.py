"""The learner: the real Feed and Position, a model that is the list of its steps, and a disk."""

from collections import deque

import msgspec

from learner.book.feed import Ended, Feed
from learner.book.position import Position, check_position
from schemas import Outcome, Progress, Snapshot, WeightUpdate
from tests.simulation.world import RUN, Move, Role, World
from wire.kafka.records import Outgoing


class Disk:
    """The run directory: what survives a learner."""

    def __init__(self) -> None:
        self.incarnation = 0
        self.checkpoints: dict[int, list[tuple[bytes, tuple[int, ...]]]] = {}
        """Incarnation -> (position, model) of each."""
        self.ledger: list[Ended] = []

    def newest_checkpoint(self) -> tuple[Position, tuple[int, ...]]:
        for incarnation in sorted(self.checkpoints, reverse=True):
            saved, model = self.checkpoints[incarnation][-1]
            return msgspec.json.decode(saved, type=Position), model
        return Position(), ()


class Life:
    """One incarnation at work."""

    def __init__(self, role: "LearnerRole") -> None:
        world, disk = role.world, role.disk
        self.role = role
        self.rng = world.rng
        disk.incarnation += 1
        position, self.model = disk.newest_checkpoint()
        disk.ledger = disk.ledger[: position.ledger_lines]
        self.ledger = disk.ledger
        position.begin(disk.incarnation, world.log.log_id)
        self.incarnation = disk.incarnation
        setting = world.setting
        self.feed = Feed(position, batch_groups=setting.batch_groups, max_staleness=setting.max_staleness)
        self.next_offsets = {p: position.offsets.get(p, 0) for p in range(setting.partitions)}
        self._lines: deque[Ended] = deque()
        self._outs: deque[Outgoing] = deque()
        self._told = -1
        self._looked_at: tuple[int, int, int, int | None] | None = None
        self._in_training = False
        self.finished = False
        world.oracle.model_made(position.policy_version, self.model)
        self._close_if_over()
        self._outs.append(self._weights())
        self._outs.append(self._progress())
        role.tell("begins", self.incarnation, "at version", position.version, "with", position.ledger_lines, "lines")

    @property
    def superseded(self) -> bool:
        return self.incarnation < self.role.disk.incarnation

    def moves(self) -> list[Move]:
        if self._lines:
            return [self._append_line]
        if self._outs:
            return [self._publish]
        if self.finished:
            return []
        feed, log = self.feed, self.role.world.log
        moves: list[Move] = []
        ready = [] if feed.full else [p for p, o in self.next_offsets.items() if o < log.end("trajectories", p)]
        if ready:
            moves += [lambda: self._read(self.rng.choice(ready))] * 2
        if self._in_training:
            moves.append(self._finish_step)
        elif feed.drained:
            moves.append(self._finish)
        else:
            here = (feed.held, feed.position.version, feed.position.ledger_lines, feed.position.admitted)
            if here != self._looked_at:
                moves.append(self._take_batch)
        if self._told != feed.position.ledger_lines:
            moves.append(self._tell_progress)
        if self.rng.random() < 0.15 and not self.role.world.calm:
            moves.append(self._checkpoint)
        return moves

    def _read(self, partition: int) -> None:
        offset = self.next_offsets[partition]
        self.next_offsets[partition] += 1
        event = self.role.world.log.events("trajectories", partition)[offset]
        self._lines.extend(self.feed.offer(event, partition, offset))

    def _take_batch(self) -> None:
        position = self.feed.position
        self._looked_at = (self.feed.held, position.version, position.ledger_lines, position.admitted)
        taken = self.feed.take_batch()
        self._lines.extend(taken.ended)
        if taken.batch is not None:
            self._batch = taken.batch
            self._in_training = True
            self.role.world.oracle.trains(self.model, taken.batch)

    def _finish_step(self) -> None:
        self._in_training = False
        world = self.role.world
        if world.odds(0.15):
            self._lines.extend(self.feed.finish_batch(self._batch, Outcome.STEP_SKIPPED))
        else:
            self.model = (*self.model, world.oracle.new_step(self._batch))
            self._lines.extend(self.feed.finish_batch(self._batch, Outcome.TRAINED))
            world.oracle.model_made(self.feed.position.policy_version, self.model)
            self._close_if_over()
            behind = self.feed.position.version - self._announced
            if behind > world.setting.max_staleness or self.feed.closing or self.rng.random() < 0.7:
                self._outs.append(self._weights())
        self._outs.append(self._progress())

    def _close_if_over(self) -> None:
        max_updates = self.role.world.setting.max_updates
        if max_updates is not None and self.feed.position.version >= max_updates and not self.feed.closing:
            self._lines.extend(self.feed.close())

    def _append_line(self) -> None:
        line = self._lines.popleft()
        self.ledger.append(line)
        self.role.tell("ledger", line.admission_number, line.outcome, f"v{line.incarnation}.{line.version}")
        if self.ledger is self.role.disk.ledger:
            self.role.world.oracle.ended(line, self.ledger)

    def _publish(self) -> None:
        self.role.world.publish(self.role, self._outs.popleft())

    def _weights(self) -> Outgoing:
        position = self.feed.position
        self._announced = position.version
        update = WeightUpdate(
            model="m", incarnation=position.incarnation, version=position.version, published_at=0.0,
            snapshot=Snapshot(uri="", version=position.version, files=(), digest=""),
        )  # fmt: skip
        return Outgoing("weights", f"m:{position.incarnation}", update)

    def _progress(self, *, finished: bool = False) -> Outgoing:
        self._told = self.feed.position.ledger_lines
        progress: Progress = self.feed.position.progress(
            run_id=RUN, closing=self.feed.closing, finished=finished, updated_at=self.role.world.now
        )
        return Outgoing("progress", f"{RUN}:{self.incarnation}", progress)

    def _tell_progress(self) -> None:
        self._outs.append(self._progress())

    def _checkpoint(self) -> None:
        if self._in_training and self.rng.random() < 0.5:
            return
        position = self.feed.position
        check_position(position)
        self.role.world.oracle.checkpointed(position, self.ledger, self.model, self.role.world.log)
        saved = self.role.disk.checkpoints.setdefault(self.incarnation, [])
        saved.append((msgspec.json.encode(position), self.model))
        self.role.tell("checkpoint", position.version, position.ledger_lines)

    def _finish(self) -> None:
        self._checkpoint()
        self._outs.append(self._progress(finished=True))
        self.finished = True


class LearnerRole(Role):
    """Its lives, one after the other; and one that is taken for dead and goes on for a while."""

    name = "learner"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.disk = Disk()
        self.life: Life | None = None
        self.zombie: Life | None = None

    @property
    def finished(self) -> bool:
        return self.life is not None and self.life.finished

    @property
    def closing(self) -> bool:
        return self.life is not None and self.life.feed.closing and not self.life.finished

    def moves(self) -> list[Move]:
        if self.life is None:
            return [self._begin]
        moves = self.life.moves()
        if self.zombie is not None and not self.world.calm:
            moves.append(self._zombie_moves)
        return moves

    def crash(self) -> None:
        self.life = self.zombie = None

    def false_death(self) -> None:
        """Another learner starts while this one lives; it looks before it saves, and stops when it sees the other."""
        if self.life is not None:
            self.tell("FALSE DEATH")
            self.zombie, self.life = self.life, None

    def _begin(self) -> None:
        self.life = Life(self)

    def _zombie_moves(self) -> None:
        zombie = self.zombie
        assert zombie is not None
        moves = zombie.moves()
        if not moves or (zombie.superseded and self.rng.random() < 0.3):
            self.zombie = None
            return
        move = self.rng.choice(moves)
        if zombie.superseded and move.__name__ in ("_checkpoint", "_finish"):
            self.zombie = None
            return
        move()
