"""One role as a process: started in a session of its own, tied to its parent's life, its output in a log.

The kernel sends the child SIGKILL when the thread that started it ends (PR_SET_PDEATHSIG), whatever ended it: a
supervisor killed with -9 leaves no child behind. Own sessions keep a terminal's Ctrl-C from reaching the roles: the
supervisor alone decides the order in which they end.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wire.child import dies_with_parent

_TAIL_BYTES = 4000


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """How to start one role."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    stop_seconds: float = 20.0
    """Between SIGTERM and SIGKILL."""


class RestartBudget:
    """At most `restarts` in any `window_seconds`; each wait doubles. Pure: the caller brings the time (seconds)."""

    def __init__(self, restarts: int = 5, window_seconds: float = 300.0, first_wait_seconds: float = 0.5) -> None:
        self._restarts = restarts
        self._window_seconds = window_seconds
        self._first_wait_seconds = first_wait_seconds
        self._times: deque[float] = deque()

    def next_wait(self, now: float) -> float | None:
        """Seconds to wait before the restart that is due now; None: no more restarts."""
        while self._times and self._times[0] <= now - self._window_seconds:
            self._times.popleft()
        if len(self._times) >= self._restarts:
            return None
        wait = self._first_wait_seconds * 2 ** len(self._times)
        self._times.append(now)
        return min(wait, 15.0)


async def output_of(module: str, *arguments: str) -> str:
    """What `python -m module` prints, in a process of its own, which ends with this one and with the wait for it.

    Raises CalledProcessError, with the last line that it said as `stderr`.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        preexec_fn=dies_with_parent(),
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines() or ["no reason was given"]
        raise subprocess.CalledProcessError(process.returncode, module, stderr=lines[-1])
    return output.decode()


async def start_process(spec: RoleSpec) -> asyncio.subprocess.Process:
    """Start the role in a session of its own; what it prints is appended to its log."""
    spec.log.parent.mkdir(parents=True, exist_ok=True)
    with spec.log.open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *spec.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=dies_with_parent(),
            # a thread that spins while it waits for another takes that one's core from it: learner, sampler and judged
            # programs share the cores (a matrix product with two threads took up to thirty times as long)
            env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **spec.environment},
        )


async def stop_process(process: asyncio.subprocess.Process, stop_seconds: float) -> bool:
    """SIGTERM, then after `stop_seconds` SIGKILL to its whole session. True when it ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(stop_seconds):
            await process.wait()
    except TimeoutError:
        kill_session(process.pid)
        await process.wait()
        return False
    kill_session(process.pid)  # what it may have left behind in its session
    return True


def kill_session(pid: int) -> None:
    """SIGKILL the process group that a role leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def headwater_command(*arguments: str) -> list[str]:
    """This installation's command line, whatever PATH and the folder it is started in say."""
    return [sys.executable, "-P", "-m", "headwater", *arguments]


def describe_exit(code: int | None) -> str:
    """An exit status in words."""
    if code is None:
        return "still running"
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exit status {code}"


def last_lines(log: Path, count: int = 12) -> str:
    """The end of a log, for the supervisor's last word."""
    try:
        with log.open("rb") as opened:
            opened.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = opened.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-count:])
