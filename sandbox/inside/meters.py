"""What a run used: read from the control group's files, or from the kernel's record of reaped children.

The files are opened by the host and passed in, so no control group needs to be visible in the jail.
"""

import contextlib
import os
import resource
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """Counters before a run."""

    cpu_ns: int
    memory_bytes: int
    memory_kills: int
    process_refusals: int


class Meters:
    """Without control groups: CPU and memory of the children that ended, nothing refused, nothing killed."""

    def start(self) -> Reading:
        """Read the counters and set the peak back."""
        return Reading(self.total_cpu_ns(), self.memory_bytes(), self.memory_kills(), self.process_refusals())

    def cpu_ns(self, before: Reading) -> int:
        """CPU time since `before`, of all processes together."""
        return self.total_cpu_ns() - before.cpu_ns

    def since(self, before: Reading) -> "dict[str, int]":
        """Everything since `before`, for the report."""
        return {
            "cpu_ns": self.cpu_ns(before),
            "peak_bytes": max(0, self.peak_bytes() - before.memory_bytes),
            "memory_kills": self.memory_kills() - before.memory_kills,
            "process_refusals": self.process_refusals() - before.process_refusals,
        }

    def total_cpu_ns(self) -> int:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return int((usage.ru_utime + usage.ru_stime) * 1e9)

    def peak_bytes(self) -> int:
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024

    def memory_bytes(self) -> int:
        return 0

    def held_bytes(self) -> int:
        """Memory that cannot be taken back: of processes, and of files in memory."""
        return 0

    def memory_kills(self) -> int:
        return 0

    def process_refusals(self) -> int:
        return 0


class GroupMeters(Meters):
    """With a control group. The keys of `files` say what the host has."""

    def __init__(self, files: "dict[str, int]") -> None:
        self.files = files

    def start(self) -> Reading:
        if "peak" in self.files:
            # a kernel that cannot set it back: the peak is then the jail's, not the run's
            with contextlib.suppress(OSError):
                os.pwrite(self.files["peak"], b"0", 0)
        return super().start()

    def text(self, name: str) -> str:
        return os.pread(self.files[name], 4096, 0).decode()

    def field(self, name: str, key: str) -> int:
        for line in self.text(name).splitlines():
            left, _, right = line.partition(" ")
            if left == key:
                return int(right)
        return 0

    def total_cpu_ns(self) -> int:
        if "cpuacct.usage" in self.files:
            return int(self.text("cpuacct.usage"))
        if "cpu.stat" in self.files:
            return self.field("cpu.stat", "usage_usec") * 1000
        return super().total_cpu_ns()

    def peak_bytes(self) -> int:
        return int(self.text("peak")) if "peak" in self.files else super().peak_bytes()

    def held_bytes(self) -> int:
        if "memory.stat" not in self.files:
            return 0
        fields = dict(line.split() for line in self.text("memory.stat").splitlines() if line.count(" ") == 1)
        return int(fields.get("anon", fields.get("rss", 0))) + int(fields.get("shmem", 0))

    def memory_bytes(self) -> int:
        return int(self.text("memory")) if "memory" in self.files else 0

    def memory_kills(self) -> int:
        return self.field("kills", "oom_kill") if "kills" in self.files else 0

    def process_refusals(self) -> int:
        return self.field("pids.events", "max") if "pids.events" in self.files else 0


def open_meters(files: "dict[str, int]") -> Meters:
    """Choose by what the host passed."""
    return GroupMeters(files) if files else Meters()
