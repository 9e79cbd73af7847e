"""What must hold (invariants 2–6), judged from what is on the log and on the disk, not from what the roles believe."""

from collections import defaultdict
from typing import TYPE_CHECKING

from learner.book.feed import Batch, Ended
from learner.book.position import Position
from schemas import (
    Cancel,
    CancelRequest,
    Drained,
    Event,
    Execution,
    Generation,
    GroupDropped,
    Outcome,
    PolicyVersion,
    Prompt,
    Purpose,
    Reward,
    Rollout,
    SourceEnd,
    Trajectory,
    Verdict,
)  # fmt: skip
from schemas.ids import group_id, prompt_id
from tests.simulation.log import Log

if TYPE_CHECKING:
    from tests.simulation.world import World

Sample = tuple[str, int, str]
"""(group id, sample index, digest)"""


class Violation(Exception):
    """An invariant does not hold."""


def check(holds: bool, what: str, *details: object) -> None:
    if not holds:
        raise Violation(f"{what}: {' '.join(map(str, details))}" if details else what)


class Oracle:
    """Follows every append, commit, ledger line, step and checkpoint."""

    def __init__(self, batch_groups: int, max_staleness: int) -> None:
        self.max_staleness = max_staleness
        self.bound = (max_staleness + 1) * batch_groups
        self.lost: set[Sample] = set()
        """Executions whose grader never answers."""
        self.histories: dict[PolicyVersion, tuple[int, ...]] = {}
        """Of every version ever made: the steps that made it."""
        self.steps: list[list[str]] = []
        """Of every step: its groups."""
        self.ended_sources: set[int] = set()

    def new_log(self, log: Log) -> None:
        self.log = log
        self.generations: dict[str, tuple[int, int, Generation]] = {}
        self.numbers: dict[int, str] = {}
        self.cancelled: set[str] = set()
        self.ends: dict[str, Event] = {}
        self.executed: set[Sample] = set()
        self.judged: set[Sample] = set()
        self.rewards: dict[Sample, list[tuple[int, float | None]]] = defaultdict(list)
        self.first_rollout: dict[tuple[str, int], tuple[int, str]] = {}
        self.unsampled: set[Sample] = set()
        self.admitted_now = False

    # --- the log

    def appended(self, topic: str, partition: int, offset: int, event: Event) -> None:
        if isinstance(event, Generation):
            self._admitted(partition, offset, event)
        elif isinstance(event, Cancel):
            self.cancelled.add(event.group_id)
        elif isinstance(event, Rollout):
            check(event.group_id in self.generations, "a rollout without its generation (2)", event.group_id)
            self.first_rollout.setdefault((event.group_id, event.sample_index), (offset, event.digest))
            if event.unscorable is not None:
                self.unsampled.add(_sample(event))
        elif isinstance(event, Execution):
            self.executed.add(_sample(event))
        elif isinstance(event, Verdict):
            self.judged.add(_sample(event))
        elif isinstance(event, Reward):
            self.rewards[_sample(event)].append((offset, event.reward))
        elif isinstance(event, Trajectory | GroupDropped):
            check(event.group_id in self.generations, "an end without a beginning (3)", event.group_id)
            if isinstance(event, Trajectory):
                self._assembled(event)
            self.ends.setdefault(event.group_id, event)
        elif isinstance(event, Drained) and topic == "trajectories":
            self._drained(partition, event)

    def _admitted(self, partition: int, offset: int, event: Generation) -> None:
        if event.group_id in self.generations:
            check(self.generations[event.group_id][2] == event, "one identity is admitted twice (2)", event.group_id)
            return
        self.generations[event.group_id] = (partition, offset, event)
        if event.admission_number is not None:
            check(event.admission_number == len(self.numbers), "numbers do not rise without gaps (4)", event)
            self.numbers[event.admission_number] = event.group_id
            self.admitted_now = True

    def _assembled(self, event: Trajectory) -> None:
        generation = self.generations[event.group_id][2]
        scores: list[float] = []
        for member in event.members:
            sample = (event.group_id, member.sample_index, member.digest)
            first = self.first_rollout[event.group_id, member.sample_index]
            check(first[1] == member.digest, "not the first rollout in log order (2)", sample)
            if member.reward is not None:
                known = [reward for _, reward in self.rewards[sample]]
                check(member.reward in known, "the reward is of other tokens (2)", sample, member.reward, known)
                scores.append(member.reward)
        check(len(scores) >= generation.min_samples, "too few members (3)", event.group_id)
        if event.purpose == Purpose.TRAIN:
            check(len(set(scores)) > 1, "a group without spread (3)", event.group_id)

    def _drained(self, partition: int, event: Drained) -> None:
        offset = next(o for o, e in enumerate(self.log.events("generations", partition)) if e == event)
        for group, (where, begin, generation) in self.generations.items():
            if where == partition and begin < offset and generation.admission_number is not None:
                check(group in self.ends, "drained before a group of the partition has ended (3)", group)

    def committed(self, who: str, topic: str, partition: int, before: int, offset: int, now: float) -> None:
        check(offset >= before, "a commit goes back (1)", who, topic, before, offset)
        for position in range(before, offset):
            event = self.log.events(topic, partition)[position]
            holds = self._is_durable(who, topic, partition, position, event, now)
            check(holds, "committed before its result is durable (1)", who, topic, partition, position, event)

    def _is_durable(self, who: str, topic: str, partition: int, offset: int, event: Event, now: float) -> bool:
        if isinstance(event, Rollout) and who == "dispatch":
            return _sample(event) in self.executed or _sample(event) in self.judged
        if isinstance(event, Execution):
            return _sample(event) in self.judged or _sample(event) in self.lost
        if isinstance(event, Verdict):
            return _sample(event) in self.rewards
        if isinstance(event, Generation) and who == "rollout":
            sampled = all((event.group_id, index) in self.first_rollout for index in range(event.num_samples))
            over = event.group_id in self.cancelled or now >= event.admitted_at + event.deadline_seconds
            return sampled or over
        if isinstance(event, Generation | Rollout | Reward):
            return self._is_not_needed(event, offset)
        if isinstance(event, Drained) and who == "collect":
            return event in self.log.events("trajectories", partition)
        if isinstance(event, Prompt) and who == f"scheduler-{event.purpose}":
            return self._is_admitted(topic, partition, offset, event)
        if isinstance(event, SourceEnd):
            return who != "scheduler-train"
        if isinstance(event, CancelRequest) and event.group_id in self.generations:
            generation = self.generations[event.group_id][2]
            over = now >= generation.admitted_at + generation.deadline_seconds  # collect is about to end it
            return over or event.group_id in self.cancelled or event.group_id in self.ends
        return True

    def _is_not_needed(self, event: Generation | Rollout | Reward, offset: int) -> bool:
        """Whether collect may forget it: its group has ended, or another counts in its place."""
        if isinstance(event, Generation):
            first = self.generations[event.group_id][1]
            return event.group_id in self.ends or offset > first
        if isinstance(event, Rollout):
            return event.group_id in self.ends or self.first_rollout[event.group_id, event.sample_index][0] < offset
        group, index, digest = _sample(event)
        if (group, index, digest) in self.unsampled:
            return True  # the rollout itself says all there is to say
        return (
            group in self.ends
            or self.first_rollout[group, index][1] != digest
            or (self.rewards[group, index, digest][0][0] < offset)
        )

    def _is_admitted(self, topic: str, partition: int, offset: int, prompt: Prompt) -> bool:
        name = prompt.id or prompt_id(self.log.log_id, topic, partition, offset)
        admitted = group_id("run", prompt.domain, name, prompt.epoch) in self.generations
        return admitted or (prompt.source is not None and prompt.source.index in self.ended_sources)

    # --- the learner

    def new_step(self, batch: Batch) -> int:
        self.steps.append([group.group_id for group in batch.groups])
        return len(self.steps) - 1

    def model_made(self, version: PolicyVersion, model: tuple[int, ...]) -> None:
        check(len(model) == version.version, "a version is not its number of updates (4)", version, model)
        check(self.histories.setdefault(version, model) == model, "two models under one version (5)", version)

    def trains(self, model: tuple[int, ...], batch: Batch) -> None:
        trained = {group for step in model for group in self.steps[step]}
        for group, age in zip(batch.groups, batch.ages, strict=True):
            check(group.group_id not in trained, "a group is trained twice (4)", group.group_id)
            versions = {span.policy_version for member in group.members for span in member.spans} - {None}
            true = max(self._age(version, model) for version in versions if version is not None)
            check(true == age, "a wrong age (6)", group.group_id, age, "not", true)
            check(true <= self.max_staleness, "trained on stale tokens (6)", group.group_id, true)

    def _age(self, version: PolicyVersion, model: tuple[int, ...]) -> int:
        """Updates of the lineage since it parted from that version's."""
        shared = 0
        for ours, theirs in zip(model, self.histories[version], strict=False):
            if ours != theirs:
                break
            shared += 1
        return len(model) - shared

    def ended(self, line: Ended, ledger: list[Ended]) -> None:
        """A line of the surviving ledger, just appended."""
        for other in ledger[:-1]:
            check(other.incarnation <= line.incarnation, "a line of a lower incarnation after a higher (4)", line)
            same = (other.log_id, other.admission_number) == (line.log_id, line.admission_number)
            check(not same and other.group_id != line.group_id, "a group ends twice (3)", line)
        if line.log_id == self.log.log_id:
            check(self.numbers.get(line.admission_number) == line.group_id, "a group ends that never began (3)", line)
        if line.source is not None:
            self.ended_sources.add(line.source.index)

    def checkpointed(self, position: Position, ledger: list[Ended], model: tuple[int, ...], log: Log) -> None:
        check(position.ledger_lines == len(ledger), "the checkpoint and its ledger differ (4)", position.ledger_lines)
        check(position.version == len(model), "the checkpoint and its model differ (4)", position.version)
        trained = [line.group_id for line in ledger if line.outcome == Outcome.TRAINED]
        check(trained == [g for step in model for g in self.steps[step]], "the ledger is not the order consumed (4)")
        if position.log_id != log.log_id:
            return
        ended = {line.admission_number for line in ledger if line.log_id == log.log_id}
        check(all(number in position.ended for number in ended), "an ended number is not in the position (4)")
        check(len(position.ended) == len(ended), "a number in the position has not ended (4)", position.ended)
        for partition, offset in position.offsets.items():
            for event in log.events("trajectories", partition)[:offset]:
                if isinstance(event, Trajectory | GroupDropped):
                    check(event.admission_number in ended, "the position passes a group that has not ended (4)", event)

    # --- at any time, and at the end

    def after_step(self, world: "World") -> None:
        scheduler, life = world.scheduler, world.learner.life
        if self.admitted_now and scheduler.admission is not None:
            progress = scheduler.progress_read
            ended = progress.ended_low + len(progress.ended_above) if progress else 0
            check(
                len(self.numbers) - ended <= self.bound, "more outstanding than (η+1)·B (6)", len(self.numbers), ended
            )
        self.admitted_now = False
        if life is not None:
            check(life.feed.held <= self.bound, "the feed holds more than (η+1)·B (10)", life.feed.held)
            newest = max(world.learner.disk.checkpoints, default=0)
            check(newest <= life.incarnation, "a checkpoint of a later life (5)")

    def at_rest(self, world: "World") -> None:
        life = world.learner.life
        assert life is not None
        ledger = world.learner.disk.ledger
        ended = sorted(line.admission_number for line in ledger if line.log_id == self.log.log_id)
        check(ended == list(range(len(self.numbers))), "not every admitted group has ended once (3)", ended)
        trained = [line.group_id for line in ledger if line.outcome == Outcome.TRAINED]
        check(
            trained == [g for step in life.model for g in self.steps[step]], "the ledger is not the order consumed (4)"
        )
        check(sum(life.feed.position.outcomes.values()) == len(ledger), "outcomes and ledger differ (4)")
        check(
            world.scheduler.admission is not None and world.scheduler.admission.outstanding == 0,
            "a slot is not free (6)",
        )
        open_groups = [group for group in self.generations if group not in self.ends]
        check(not open_groups, "groups without an end (3)", open_groups)
        if world.setting.max_updates is None:
            indices = sorted(line.source.index for line in ledger if line.source is not None)
            check(indices == list(range(world.setting.num_prompts)), "not every task has ended once (3)", indices)
        else:
            check(life.feed.position.version == world.setting.max_updates, "not all updates were made (3)")


def _sample(event: Rollout | Execution | Verdict | Reward) -> Sample:
    if isinstance(event, Rollout):
        return event.group_id, event.sample_index, event.digest
    return event.context.group_id, event.context.sample_index, event.context.digest
