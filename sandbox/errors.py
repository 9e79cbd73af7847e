"""What can go wrong, as a tree.

SandboxError
├── SandboxUnavailable   this host cannot judge safely (raised at start, with the fix)
└── GraderFault          this job could not be graded: no reward, worth another try elsewhere
    └── JailLost         the jail ended or fell silent under a run (handled inside the sandbox)

A program under judgement causes none of these: what it does is a verdict.
"""

from typing import ClassVar


class SandboxError(Exception):
    """Anything this package raises by itself."""

    restart_helps: ClassVar[bool] = True
    """False: the same would happen again, so that a supervisor starts the role no more."""


class SandboxUnavailable(SandboxError):
    """The host lacks something without which programs would run unconfined."""

    restart_helps = False


class GraderFault(SandboxError):
    """The job could not be graded. `str()` of it is the reason, for people."""


class TaskFault(GraderFault):
    """The task cannot be graded as it is written: the same would come of every try."""


class JailLost(GraderFault):
    """The jail's init is gone or does not answer. `out_of_memory`: the kernel killed it for memory."""

    def __init__(self, reason: str, *, out_of_memory: bool = False) -> None:
        super().__init__(reason)
        self.out_of_memory = out_of_memory
