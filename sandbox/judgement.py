"""What a Judge answers, and how the kind of a run's end is decided. Pure."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from sandbox.jail.jails import Report
from sandbox.limits import RunLimits
from schemas import TestVerdict, VerdictKind

_ORDER = list(VerdictKind)


@dataclass(frozen=True)
class Judgement:
    """One program judged."""

    kind: VerdictKind
    """The worst of `tests`, or compile_error."""
    tests: tuple[TestVerdict, ...]
    """In the grader's order, all of them; empty after a compile error."""
    compile_log: str
    jail_seconds: float = 0.0
    """CPU time of everything that ran in jails for this job."""
    parts: dict[str, float] = field(default_factory=dict[str, float])
    """The same by part, in seconds: start (of its jails, where they were new), compile, cache, run."""
    reward: float | None = None
    """Only from a reward function of the user's; else `score` makes it of `tests`."""
    components: dict[str, float] = field(default_factory=dict[str, float])
    """What that function says beside its reward."""


def worst(kinds: Iterable[VerdictKind]) -> VerdictKind:
    """Return the worst of the kinds, in the order of the enum."""
    return max(kinds, key=_ORDER.index, default=VerdictKind.ACCEPTED)


def limit_reached(report: Report, limits: RunLimits) -> VerdictKind | None:
    """Return which limit ended or spoilt the run, if one did: time before memory before output."""
    if report.stop in ("cpu", "wall") or report.cpu_ns > limits.cpu_seconds * 1e9:
        return VerdictKind.TIME_LIMIT
    if report.memory_kills:
        return VerdictKind.MEMORY_LIMIT
    if report.stop == "output" or report.stdout_truncated or report.stderr_truncated:
        return VerdictKind.OUTPUT_LIMIT
    return None


def ended_well(report: Report) -> bool:
    """Whether the first process ended by itself with exit status 0."""
    return report.stop is None and report.status == 0


def failed_kind(report: Report) -> VerdictKind:
    """Return what a run is called that ended by itself, but badly."""
    return VerdictKind.PROCESS_LIMIT if report.process_refusals else VerdictKind.RUNTIME_ERROR


def ending(report: Report) -> str:
    """Say in words how the first process ended."""
    if os.WIFSIGNALED(report.status):
        return f"ended by signal {os.WTERMSIG(report.status)}"
    return f"exit status {os.waitstatus_to_exitcode(report.status)}"


LIMIT_WORDS = {
    VerdictKind.TIME_LIMIT: "took too long",
    VerdictKind.MEMORY_LIMIT: "used too much memory",
    VerdictKind.OUTPUT_LIMIT: "wrote too much output",
    VerdictKind.PROCESS_LIMIT: "started too many processes or threads",
}
