"""How things are measured: sides that alternate, ratios within one run, CPU time from /proc. Times are in seconds."""

import os
import statistics
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Side = Callable[[], Awaitable[float]]
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass
class Measurement:
    """What a part found: figures (unit in the name), and ratios with the lowest and highest of their rounds."""

    part: str
    repeats: int
    figures: dict[str, Any] = field(default_factory=dict[str, Any])
    ratios: dict[str, float] = field(default_factory=dict[str, float])
    spread: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    def ratio(self, name: str, ours: Sequence[float], other: Sequence[float]) -> None:
        """The median over rounds of ours / other: what shares a round shares the machine's noise."""
        rounds = [one / two for one, two in zip(ours, other, strict=True)]
        self.ratios[name] = round(statistics.median(rounds), 3)
        self.spread[name] = (round(min(rounds), 3), round(max(rounds), 3))

    def as_json(self) -> dict[str, Any]:
        return {
            "part": self.part,
            "figures": self.figures,
            "ratios": self.ratios,
            "spread": self.spread,
            "repeats": self.repeats,
            "machine": machine(),
        }


async def alternate(
    sides: Mapping[str, Side], rounds: int, advance: Callable[[], None] = lambda: None
) -> dict[str, list[float]]:
    """Measure every side once a round, in turn: a b, b a, a b, …"""
    measured: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides)
        for name in names if number % 2 == 0 else reversed(names):
            measured[name].append(await sides[name]())
            advance()
    return measured


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which `share` of all lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def cpu_seconds(pid: int) -> float:
    """CPU time of one process, its threads included; 0 when it is gone."""
    times = _times(pid)
    return sum(times[:2])


def tree_cpu_seconds(pid: int) -> float:
    """CPU time of a process, of all below it, and of those of them that have ended and been waited for."""
    return sum(sum(_times(member)) for member in (pid, *descendants(pid)))


def descendants(pid: int) -> list[int]:
    """The processes below one that are alive."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = [int(child) for child in children.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [member for child in below for member in (child, *descendants(child))]
    return found


def memory_bytes(process: int | str = "self") -> int:
    """Resident memory of a process, by default this one."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def machine() -> dict[str, Any]:
    """What a figure depends on. A load above the number of CPUs means that others were at work too."""
    import platform

    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpus": os.cpu_count(),
        "cpu_model": models[0] if models else platform.machine(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30), 1),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "load_1_minute": round(os.getloadavg()[0], 1),
    }


def _times(pid: int) -> tuple[float, float, float, float]:
    """utime, stime, and those of the children waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return (0.0, 0.0, 0.0, 0.0)
    utime, stime, cutime, cstime = (int(value) / _TICKS_PER_SECOND for value in fields[11:15])
    return (utime, stime, cutime, cstime)
