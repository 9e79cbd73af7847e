"""What a grader saw, test by test. A failure to grade is a `fault`, never a kind (invariant 7)."""

from enum import StrEnum

import msgspec

from schemas.executions import Context
from schemas.outcomes import MayBeUnscorable, UnscorableReason, tell_both_ways


class VerdictKind(StrEnum):
    """What became of one test, or of the job (the worst that happened, in this order of the enum)."""

    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong_answer"
    RUNTIME_ERROR = "runtime_error"
    OUTPUT_LIMIT = "output_limit"
    PROCESS_LIMIT = "process_limit"
    MEMORY_LIMIT = "memory_limit"
    TIME_LIMIT = "time_limit"
    COMPILE_ERROR = "compile_error"


class TestVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One test's outcome and what it cost."""

    __test__ = False

    kind: VerdictKind
    name: str = ""
    hidden: bool = False
    required: bool = False
    weight: float = 1.0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_bytes: int = 0
    output_bytes: int = 0
    exit_status: int | None = None
    signal: int | None = None
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    detail: str = ""
    """For people and the model's next turn: bounded, empty for a hidden test."""


class Verdict(MayBeUnscorable, frozen=True, kw_only=True, tag="verdict"):
    """One execution judged. Exactly one of `fault` and `kind` is set."""

    execution_id: str
    context: Context
    kind: VerdictKind | None = None
    tests: tuple[TestVerdict, ...] = ()
    compile_log: str = ""
    fault: str | None = None
    """Why it could not be graded, in words (the rollout is then unscorable)."""
    reward: float | None = None
    """Only from external graders that score by themselves; else the reward hop derives it from `tests`."""
    components: dict[str, float] = {}
    feedback: str = ""
    jail_seconds: float = 0.0

    def __post_init__(self) -> None:
        tell_both_ways(self, self.unscorable, "fault", UnscorableReason.GRADER_FAULT)
