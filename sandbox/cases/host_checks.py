"""What a case leaves on the host, looked at from outside: the checks that cases name in words."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.jail import controlgroups
from sandbox.jail.jails import UIDS, Site
from sandbox.jail.session import MAX_LOG_CHARACTERS
from sandbox.judgement import Judgement

MAX_SERVICE_GROWTH_BYTES = 256 << 20
MAX_SERVICE_DISK_BYTES = 16 << 20
LATER_SECONDS = 3.0
GRACE_SECONDS = 5.0
_SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/var/crash", "/home", "/root")
_SECRETS = ("/etc/shadow", "/etc/passwd", "/etc/hostname")


@dataclass
class Seen:
    """What was observed while and after a case ran."""

    judgement: Judgement | None = None
    repeated: list[Judgement | None] = field(default_factory=list[Judgement | None])
    """More runs of the same case, where one is asked for: one after, and two that overlap."""
    processes_left: list[int] = field(default_factory=list[int])
    files_left: list[str] = field(default_factory=list[str])
    files_left_later: list[str] = field(default_factory=list[str])
    groups_left: list[str] = field(default_factory=list[str])
    mounts_left: list[str] = field(default_factory=list[str])
    memory_growth_bytes: int = 0
    disk_bytes: int = 0
    neighbours_passed: bool = True
    next_passed: bool = True
    wall_limit_seconds: float = 0.0


def judged_processes(site: Site) -> list[int]:
    """Pids of everything alive that runs as a judged user of this Judge (or of its testers)."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                owner = entry.stat().st_uid
            except FileNotFoundError:
                continue
            if _is_judged(site, owner):
                found.append(int(entry.name))
    return found


def _is_judged(site: Site, uid: int) -> bool:
    offset = uid - site.first_uid
    return 0 <= offset < UIDS and offset % 3 != 0


def files_of_jails(site: Site) -> list[str]:
    """Files in the host's shared folders that any user of this Judge's jails owns."""
    found: list[str] = []
    for folder in (*_SHARED_FOLDERS, str(Path.cwd())):
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            try:
                owner = entry.stat(follow_symlinks=False).st_uid
            except FileNotFoundError:
                continue
            if 0 <= owner - site.first_uid < UIDS:
                found.append(entry.path)
    return found


def groups_of(site: Site) -> list[str]:
    """Control groups of this Judge's jails."""
    return [
        str(path)
        for parent in site.hierarchy.folders
        for path in parent.glob(f"{controlgroups.PREFIX}*-{site.token}.*")
    ]


def mounts_of(site: Site) -> list[str]:
    """Mounts of this Judge in the host's own table, and its folder if it is still there."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    left = [line for line in lines if str(site.staging) in line]
    return [*left, str(site.staging)] if site.staging.exists() else left


class Watch:
    """Samples the service's own memory while a case runs."""

    def __init__(self) -> None:
        self.start = self.highest = _resident_bytes()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Watch":
        self._task = asyncio.create_task(self._sample())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _sample(self) -> None:
        while True:
            self.highest = max(self.highest, _resident_bytes())
            await asyncio.sleep(0.05)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def folder_bytes(folder: Path) -> int:
    """Disk that a folder takes."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def handed_back(judgement: Judgement) -> str:
    """All the text that leaves the sandbox."""
    return "\n".join((judgement.compile_log, *(test.detail for test in judgement.tests)))


def _host_text_shown(seen: Seen) -> bool:
    if seen.judgement is None:
        return False
    text = handed_back(seen.judgement)
    secrets = [value for value in os.environ.values() if len(value) >= 12]
    for path in _SECRETS:
        try:
            secrets += [line for line in Path(path).read_text().splitlines() if len(line) >= 8]
        except OSError:
            continue
    return any(secret in text for secret in secrets)


def _in_time(seen: Seen) -> bool:
    limit = seen.wall_limit_seconds + GRACE_SECONDS
    return seen.judgement is not None and all(test.wall_seconds <= limit for test in seen.judgement.tests)


def _same(seen: Seen) -> bool:
    def kinds(judgement: Judgement | None) -> list[str] | None:
        return None if judgement is None else [judgement.kind, *(test.kind for test in judgement.tests)]

    return len(seen.repeated) >= 3 and all(kinds(one) == kinds(seen.judgement) for one in seen.repeated)


CHECKS: dict[str, Callable[[Seen], bool]] = {
    "no process of the job left": lambda seen: not seen.processes_left,
    "no file outside the jail changed": lambda seen: not seen.files_left and not seen.files_left_later,
    "no temp file of the job left": lambda seen: not (seen.files_left or seen.groups_left or seen.mounts_left),
    "service memory bounded": lambda seen: seen.memory_growth_bytes <= MAX_SERVICE_GROWTH_BYTES,
    "service disk bounded": lambda seen: seen.disk_bytes <= MAX_SERVICE_DISK_BYTES and not seen.files_left,
    "other jobs unaffected": lambda seen: seen.neighbours_passed,
    "next job on the same worker gives its normal result": lambda seen: seen.next_passed,
    "not reported as an infrastructure fault": lambda seen: seen.judgement is not None,
    "verdict within the wall limit plus 5 s": _in_time,
    "compiler message handed back is cut to a bounded length": lambda seen: (
        seen.judgement is not None and len(seen.judgement.compile_log) <= MAX_LOG_CHARACTERS
    ),
    "no text of a host file in anything handed back": lambda seen: not _host_text_shown(seen),
    "same result when the case is run twice and when two runs overlap": _same,
}
TWICE = "same result when the case is run twice and when two runs overlap"
LATER = "no file outside the jail changed"
"""The checks that need more than one run, or a look some seconds later."""
