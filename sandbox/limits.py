"""What one run may use: the task's wish, else the language's default, and never above the host's cap."""

from dataclasses import dataclass, replace

from schemas import Limits

MIB = 1 << 20
WALL_PER_CPU = 3
"""The wall limit is a multiple of the CPU limit, so that a busy host fails no honest program."""
INODES = 16_384


@dataclass(frozen=True)
class RunLimits:
    """Limits of one run: all its processes together, CPU and memory and disk alike."""

    cpu_seconds: float = 5.0
    wall_seconds: float = 15.0
    memory_bytes: int = 512 * MIB
    processes: int = 64
    output_bytes: int = 8 * MIB
    disk_bytes: int = 64 * MIB

    @property
    def inodes(self) -> int:
        """Files and folders that may exist at once."""
        return INODES


DEFAULT = RunLimits()
HOST_CAP = RunLimits(
    cpu_seconds=300.0,
    wall_seconds=900.0,
    memory_bytes=8192 * MIB,
    processes=1024,
    output_bytes=64 * MIB,
    disk_bytes=2048 * MIB,
)
COMPILE = RunLimits(
    cpu_seconds=30.0,
    wall_seconds=60.0,
    memory_bytes=1024 * MIB,
    processes=128,
    output_bytes=64 * 1024,
    disk_bytes=256 * MIB,
)


def resolve(wish: Limits, default: RunLimits, cap: RunLimits = HOST_CAP) -> RunLimits:
    """Fill what the task leaves open and cap what it asks for."""
    cpu = wish.cpu_seconds or default.cpu_seconds
    wall = wish.wall_seconds
    if wall is None:
        wall = default.wall_seconds if wish.cpu_seconds is None else WALL_PER_CPU * cpu
    asked = replace(
        default,
        cpu_seconds=cpu,
        wall_seconds=wall,
        memory_bytes=wish.memory_bytes or default.memory_bytes,
        processes=wish.processes or default.processes,
        output_bytes=wish.output_bytes or default.output_bytes,
        disk_bytes=wish.disk_bytes or default.disk_bytes,
    )
    return RunLimits(
        cpu_seconds=min(asked.cpu_seconds, cap.cpu_seconds),
        wall_seconds=min(asked.wall_seconds, cap.wall_seconds),
        memory_bytes=min(asked.memory_bytes, cap.memory_bytes),
        processes=min(asked.processes, cap.processes),
        output_bytes=min(asked.output_bytes, cap.output_bytes),
        disk_bytes=min(asked.disk_bytes, cap.disk_bytes),
    )
