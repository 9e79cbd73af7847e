"""Control groups: one a jail, for limits, accounts and the kill. Version 1 and version 2.

    v1   <mount of the controller>/<own group>/headwater-jail-<service pid>-<start>-<mark>
    v2   <mount>/<own group>/headwater-jail-…, where the own group is delegated to us

The name holds the service's pid and start time, so that a group of a service that is gone is known as
stale, whoever starts next.
"""

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.errors import SandboxUnavailable

PREFIX = "headwater-jail-"
_CONTROLLERS = ("memory", "pids", "cpuacct")
_REMOVE_TRIES = 200
_REMOVE_PAUSE_SECONDS = 0.01


@dataclass(frozen=True)
class Hierarchy:
    """What this host offers: where the groups of each controller go. Version 0: nothing."""

    version: int
    parents: dict[str, Path] = field(default_factory=dict[str, Path])
    """Version 1: by controller. Version 2: all the same folder."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Controllers that are not to be had."""
        wanted = _CONTROLLERS if self.version != 2 else ("memory", "pids", "cpu")
        return tuple(name for name in wanted if name not in self.parents)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Each folder once."""
        return tuple(dict.fromkeys(self.parents.values()))


def probe(mounts: str | None = None, own: str | None = None) -> Hierarchy:
    """Find the writable groups of this process. (The arguments replace /proc/mounts and /proc/self/cgroup.)"""
    mounts = Path("/proc/self/mounts").read_text() if mounts is None else mounts
    own = Path("/proc/self/cgroup").read_text() if own is None else own
    paths = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in own.splitlines() if line.count(":") >= 2}
    first: dict[str, Path] = {}
    second: Path | None = None
    for line in mounts.splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup":
            for name in _CONTROLLERS:
                if name in options.split(","):
                    joined = next((path for names, path in paths.items() if name in names.split(",")), "/")
                    first[name] = _own_folder(Path(mount), joined)
        elif kind == "cgroup2":
            second = _own_folder(Path(mount), paths.get("", "/"))
    if first:
        return Hierarchy(1, {name: path for name, path in first.items() if os.access(path, os.W_OK)})
    if second is not None:
        return Hierarchy(2, _delegated(second))
    return Hierarchy(0)


def _own_folder(mount: Path, path: str) -> Path:
    """Where our own group is under a mount (in a container the path may be one of outside)."""
    folder = mount / path.lstrip("/")
    return folder if folder.is_dir() else mount


def _delegated(folder: Path) -> dict[str, Path]:
    """Make `folder` (version 2) able to hold jails: its controllers passed on, its processes in a leaf."""
    try:
        offered = set((folder / "cgroup.controllers").read_text().split())
        wanted = [name for name in ("memory", "pids", "cpu") if name in offered]
        control = folder / "cgroup.subtree_control"
        active = set(control.read_text().split())
        if not set(wanted) <= active:
            if (folder / "cgroup.procs").read_text().split() and (folder / "cgroup.type").exists():
                # a group with processes cannot pass controllers on: ours go to a leaf of their own
                leaf = folder / "headwater-service"
                leaf.mkdir(exist_ok=True)
                (leaf / "cgroup.procs").write_text(str(os.getpid()))
            control.write_text(" ".join(f"+{name}" for name in wanted))
    except OSError:
        return {}
    return dict.fromkeys(wanted, folder)


def start_time(pid: int) -> str | None:
    """When a process started, in the kernel's ticks, as text: with its pid it names it for good. None: gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


class ControlGroup:
    """One jail's group, in every controller there is."""

    def __init__(self, hierarchy: Hierarchy, mark: str) -> None:
        self.hierarchy = hierarchy
        name = f"{PREFIX}{os.getpid()}-{start_time(os.getpid())}-{mark}"
        self.paths = {controller: parent / name for controller, parent in hierarchy.parents.items()}
        for path in dict.fromkeys(self.paths.values()):
            try:
                path.mkdir()
            except OSError as error:
                raise SandboxUnavailable(f"cannot make the control group {path}: {error.strerror}") from error

    @property
    def entries(self) -> tuple[Path, ...]:
        """Files to which a process writes 0 to join."""
        return tuple(path / "cgroup.procs" for path in dict.fromkeys(self.paths.values()))

    def meter_files(self) -> dict[str, int]:
        """Open what the jail's init reads, by the name it knows; whoever asks closes them."""
        wanted = (
            {
                "cpuacct.usage": ("cpuacct", "cpuacct.usage", os.O_RDONLY),
                "peak": ("memory", "memory.max_usage_in_bytes", os.O_RDWR),
                "memory": ("memory", "memory.usage_in_bytes", os.O_RDONLY),
                "memory.stat": ("memory", "memory.stat", os.O_RDONLY),
                "kills": ("memory", "memory.oom_control", os.O_RDONLY),
                "pids.events": ("pids", "pids.events", os.O_RDONLY),
            }
            if self.hierarchy.version == 1
            else {
                "cpu.stat": ("cpu", "cpu.stat", os.O_RDONLY),
                "peak": ("memory", "memory.peak", os.O_RDWR),
                "memory": ("memory", "memory.current", os.O_RDONLY),
                "memory.stat": ("memory", "memory.stat", os.O_RDONLY),
                "kills": ("memory", "memory.events", os.O_RDONLY),
                "pids.events": ("pids", "pids.events", os.O_RDONLY),
            }
        )
        files: dict[str, int] = {}
        for name, (controller, file, mode) in wanted.items():
            if controller in self.paths:
                path = self.paths[controller] / file
                try:
                    files[name] = os.open(path, mode)
                except PermissionError:
                    files[name] = os.open(path, os.O_RDONLY)  # a peak that an older kernel cannot set back
                except FileNotFoundError:
                    continue
        return files

    def memory_used_bytes(self) -> int:
        """Memory in use now."""
        name = "memory.usage_in_bytes" if self.hierarchy.version == 1 else "memory.current"
        return int((self.paths["memory"] / name).read_text()) if "memory" in self.paths else 0

    def cpu_ns(self) -> int:
        """CPU time of all its processes since it was made; 0 where that is not counted."""
        if "cpuacct" in self.paths:
            return int((self.paths["cpuacct"] / "cpuacct.usage").read_text())
        if self.hierarchy.version == 2 and "cpu" in self.paths:
            fields = dict(line.split() for line in (self.paths["cpu"] / "cpu.stat").read_text().splitlines())
            return int(fields.get("usage_usec", 0)) * 1000
        return 0

    def memory_kills(self) -> int:
        """How often the kernel killed in this group for memory."""
        if "memory" not in self.paths:
            return 0
        name = "memory.oom_control" if self.hierarchy.version == 1 else "memory.events"
        fields = dict(line.split() for line in (self.paths["memory"] / name).read_text().splitlines())
        return int(fields.get("oom_kill", 0))

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set what all processes together may use."""
        if "memory" in self.paths:
            folder = self.paths["memory"]
            if self.hierarchy.version == 1:
                _limit_memory(folder, memory_bytes)
            else:
                (folder / "memory.max").write_text(str(memory_bytes))
                swap = folder / "memory.swap.max"
                if swap.exists():
                    swap.write_text("0")
        if "pids" in self.paths:
            (self.paths["pids"] / "pids.max").write_text(str(processes))

    def kill(self) -> None:
        """Kill every process in it. One that forks meanwhile is killed with its jail's first process."""
        for path in dict.fromkeys(self.paths.values()):
            with contextlib.suppress(OSError):
                (path / "cgroup.kill").write_text("1")
                continue
            for pid in _members(path):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    async def remove(self) -> None:
        """Take it away once its last process is gone (the kernel tells nobody when that is)."""
        for path in dict.fromkeys(self.paths.values()):
            for _ in range(_REMOVE_TRIES):
                try:
                    path.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    self.kill()
                    await asyncio.sleep(_REMOVE_PAUSE_SECONDS)
                else:
                    break


def _limit_memory(folder: Path, memory_bytes: int) -> None:
    """Limit memory, and memory with swap, to the same (version 1)."""
    memory, both = folder / "memory.limit_in_bytes", folder / "memory.memsw.limit_in_bytes"
    files = [memory]
    if both.exists():
        # the second may never be below the first
        files = [both, memory] if int(memory.read_text()) < memory_bytes else [memory, both]
    elif (folder / "memory.swappiness").exists():
        (folder / "memory.swappiness").write_text("0")
    for file in files:
        file.write_text(str(memory_bytes))


def _members(path: Path) -> list[int]:
    try:
        return [int(pid) for pid in (path / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def sweep(hierarchy: Hierarchy) -> int:
    """Kill and remove the groups of services that are gone; how many there were."""
    stale = 0
    for parent in hierarchy.folders:
        for path in parent.glob(f"{PREFIX}*"):
            pid, start, _ = path.name.removeprefix(PREFIX).split("-")
            if start_time(int(pid)) == start:
                continue
            for member in _members(path):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
            with contextlib.suppress(OSError):  # still emptying: the next start removes it
                path.rmdir()
                stale += 1
    return stale
