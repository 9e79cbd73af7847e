"""How many cores a process may use: what `threads = 0` stands for."""

import os
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(cpus: Path = _CPUS, quota: Path = _QUOTA) -> int:
    """Cores, not the virtual CPUs that share one: of those this process may run on, and within its container's quota.

    Matrix products keep a core's arithmetic busy: a second thread on the same core only gets in the way.
    """
    cores = {_core(cpus / f"cpu{number}", number) for number in os.sched_getaffinity(0)}
    return max(1, min(len(cores), _quota_cores(quota, len(cores))))


def _core(cpu: Path, number: int) -> str:
    """What all virtual CPUs of a core have in common: the list of them."""
    try:
        return (cpu / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:  # some virtual machines do not say: then a CPU is a core
        return str(number)


def _quota_cores(path: Path, unlimited: int) -> int:
    """`200000 100000` (microseconds of CPU in each period) is two cores; `max 100000` is no limit."""
    try:
        quota, period = path.read_text().split()
        return unlimited if quota == "max" else int(quota) // int(period)
    except OSError:  # no control groups, or version 1
        return unlimited
