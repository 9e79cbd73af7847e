"""A process that does not outlive the one that started it, whatever ends that one."""

import ctypes
import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def dies_with_parent() -> Callable[[], None]:
    """A `preexec_fn`. The death signal belongs to the thread that forks: call from one that lives as long as we do."""
    parent = os.getpid()
    libc = ctypes.CDLL(None)

    def tie() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died between fork and prctl
            os._exit(1)

    return tie
