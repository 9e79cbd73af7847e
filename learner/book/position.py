"""Where a learner stands: the part of a checkpoint that is neither model nor optimizer (invariant 4).

Restoring a `Position` and reading every partition on from `offsets` gives exactly the groups that the
checkpoint had not ended: what was ended before is known by its admission number and dropped.
"""

import msgspec

from schemas import DrainReason, Outcome, PolicyVersion, Progress, SourceProgress


class NumberSet(msgspec.Struct, kw_only=True):
    """A set of counting numbers that fills from below: all below `low`, and those in `above`.

    Its memory is the numbers above the lowest missing one; each of those is missing no longer than a
    group's deadline.
    """

    low: int = 0
    above: set[int] = msgspec.field(default_factory=set[int])

    def __contains__(self, number: int) -> bool:
        return number < self.low or number in self.above

    def __len__(self) -> int:
        return self.low + len(self.above)

    def add(self, number: int) -> None:
        """Add a number; one that is in already changes nothing."""
        if number in self:
            return
        self.above.add(number)
        while self.low in self.above:
            self.above.remove(self.low)
            self.low += 1


class Position(msgspec.Struct, kw_only=True):
    """Saved with every checkpoint as JSON. `Feed` alone changes it while a learner lives, but for the clock."""

    log_id: str = ""
    offsets: dict[int, int] = {}
    """Partition of `trajectories` -> offset to read on from: the lowest of any group held, else the next."""
    ended: NumberSet = msgspec.field(default_factory=NumberSet)
    """Admission numbers of this log that have ended."""
    outcomes: dict[Outcome, int] = {}
    """Ended groups of all logs by outcome; they sum up to `ledger_lines`."""
    sources: dict[str, NumberSet] = {}
    """Indices of each task source that have ended, over all logs."""
    incarnation: int = 0
    version: int = 0
    """Updates of the surviving lineage."""
    training_seconds: float = 0.0
    """That its updates took, waits included; from the first admission on."""
    resume_points: list[PolicyVersion] = []
    """(incarnation, version it resumed at), both rising: see `surviving_version`."""
    ledger_lines: int = 0
    """Lines of `ledger.jsonl` that belong to this position; a resume moves away what lies beyond."""
    duplicates_dropped: int = 0
    """Events of groups that had ended or were held already, or that were not of this log."""
    max_staleness: int = 0
    """Updates: the age of the oldest token ever trained on."""
    admitted: int | None = None
    """From `Drained`: how many groups this log admitted in all; None while it may admit more."""
    drain_reason: str = ""

    @property
    def policy_version(self) -> PolicyVersion:
        return PolicyVersion(self.incarnation, self.version)

    def begin(self, incarnation: int, log_id: str) -> None:
        """Start a learner's life here. Numbers, offsets and `Drained` belong to a log: a new one starts them again."""
        assert incarnation > self.incarnation, f"incarnation {incarnation} is not above {self.incarnation}"
        # a later resume at or below an earlier one makes the earlier redundant: its tokens age from the later
        while self.resume_points and self.resume_points[-1].version >= self.version:
            self.resume_points.pop()
        self.resume_points.append(PolicyVersion(incarnation, self.version))
        self.incarnation = incarnation
        if log_id != self.log_id or self.drain_reason == DrainReason.RUN_ENDED:
            # an end by `max_updates` or by time is said anew to each life that comes to it
            self.admitted = None
            self.drain_reason = ""
        if log_id != self.log_id:
            self.log_id = log_id
            self.offsets = {}
            self.ended = NumberSet()

    def is_over(self, max_updates: int, max_seconds: float | None) -> bool:
        """Whether the run has had its updates, or has no time left for one more as long as those before."""
        mean_seconds = self.training_seconds / self.version if self.version else 0.0
        out_of_time = max_seconds is not None and self.training_seconds + mean_seconds > max_seconds
        return self.version >= max_updates or out_of_time

    def surviving_version(self, sampled_with: PolicyVersion) -> int:
        """The newest version of the surviving lineage that `sampled_with` contains.

        A version that was rolled back counts as the version at which the lineage left it: of all later
        incarnations, the lowest one resumed at.
        """
        later = [point.version for point in self.resume_points if point.incarnation > sampled_with.incarnation]
        return min([sampled_with.version, *later])

    def age(self, sampled_with: PolicyVersion) -> int:
        """Updates of the surviving lineage since `sampled_with` (never below 0)."""
        return max(0, self.version - self.surviving_version(sampled_with))

    def progress(
        self,
        *,
        run_id: str,
        closing: bool,
        finished: bool,
        updated_at: float,
        weights: PolicyVersion | None = None,
    ) -> Progress:
        """What the scheduler and people see of this position.

        `updated_at` in Unix seconds; `weights`: the version published last.
        """
        return Progress(
            run_id=run_id,
            log_id=self.log_id,
            incarnation=self.incarnation,
            version=self.version,
            weights=weights,
            ended_low=self.ended.low,
            ended_above=tuple(sorted(self.ended.above)),
            outcomes={str(outcome): count for outcome, count in self.outcomes.items()},
            sources={
                name: SourceProgress(low=indices.low, above=tuple(sorted(indices.above)))
                for name, indices in self.sources.items()
            },
            closing=closing,
            finished=finished,
            updated_at=updated_at,
        )


def check_position(position: Position) -> None:
    """Assert what must hold of a position at any time: it is cheap, and a broken one must never be saved."""
    assert sum(position.outcomes.values()) == position.ledger_lines, "outcomes and ledger lines differ"
    assert position.outcomes.keys() <= set(Outcome), f"unknown outcome in {position.outcomes}"
    assert all(number > position.ended.low for number in position.ended.above), "the ended set is not normal"
