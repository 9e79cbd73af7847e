"""A service that is killed leaves no process, and what else it leaves is gone after the next start."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from sandbox import Judge
from sandbox.jail import controlgroups

SERVICE = """
import asyncio
from sandbox import Judge
from schemas import StdioGrader, StdioTest

async def main():
    async with Judge(2) as judge:
        print(judge.site.token, judge.site.first_uid, judge.site.staging, flush=True)
        sleeps = StdioGrader(tests=(StdioTest(stdout=""),))
        await asyncio.gather(*(judge.judge("import time; time.sleep(60)", sleeps) for _ in range(2)))

asyncio.run(main())
"""


def owned(first_uid: int) -> list[int]:
    """Pids that run as a user of the killed service's jails, its inits included."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and 0 <= entry.stat().st_uid - first_uid < 999:
                found.append(int(entry.name))
        except FileNotFoundError:
            continue
    return found


def wait_until(what: object, seconds: float = 10.0) -> None:
    """The kernel tells nobody when the last process of a namespace is gone."""
    deadline = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < deadline
        os.sched_yield()


def test_kill_9() -> None:
    service = subprocess.Popen([sys.executable, "-c", SERVICE], stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    token, first_uid, staging = service.stdout.readline().split()
    wait_until(lambda: len(owned(int(first_uid))) >= 4)
    service.send_signal(signal.SIGKILL)
    service.wait()
    service.stdout.close()
    wait_until(lambda: owned(int(first_uid)) == [])

    async def start_again() -> None:
        async with Judge(1):
            pass

    asyncio.run(start_again())
    groups = [
        path for parent in controlgroups.probe().folders for path in parent.glob(f"{controlgroups.PREFIX}*-{token}.*")
    ]
    assert groups == []
    assert not Path(staging).exists()
