"""A broker as a child process: it dies with its parent, and is ready when a client is answered."""

import asyncio
import ctypes
import logging
import os
import re
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from wire.errors import BrokerFailed, BrokerUnreachable
from wire.kafka.clients import connect, make_admin
from wire.kafka.settings import KafkaSettings

log = logging.getLogger(__name__)

PORTS = range(20000, 32000)
"""Below the kernel's range for outgoing connections (32768 up), whose sockets would take a port from us."""
_EXCEPTION = re.compile(r"^[\w.$]+(?:Exception|Error): (.+)", re.MULTILINE)
_PR_SET_PDEATHSIG = 1


class BrokerProcess:
    """One broker process, child of this one: whatever kills the parent kills it too."""

    def __init__(self, name: str, log_file: Path | None, *, start_seconds: float, stop_seconds: float) -> None:
        self._name = name
        self._log_file = log_file
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._log_start = 0
        """Where in the log file its present life begins."""

    async def launch(self, command: Sequence[str], port: int) -> str:
        """Start it and wait until it answers; returns `host:port`. Raises BrokerFailed when it does not."""
        assert not self.alive, "already started"
        if not is_free(port):
            raise BrokerFailed(f"port {port} is in use: choose another, or leave it out to take a free one")
        output = self._log_file.open("ab") if self._log_file else None
        self._log_start = output.tell() if output else 0
        try:
            self._process = await _spawn(command, output)
        finally:
            if output is not None:
                output.close()
        bootstrap = f"127.0.0.1:{port}"
        try:
            await self._wait_until_ready(bootstrap)
        except BaseException:
            await self.stop()
            raise
        return bootstrap

    async def stop(self) -> None:
        """End it. Does nothing when it is not running."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), self._stop_seconds)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def wait(self) -> int:
        """Wait until it ends by itself; returns its exit status."""
        assert self._process is not None, "not started"
        return await self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def memory_bytes(self) -> int:
        """Resident memory; 0 when it is not running."""
        if not self.alive:
            return 0
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    async def _wait_until_ready(self, bootstrap: str) -> None:
        assert self._process is not None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._start_seconds
        while loop.time() < deadline:
            if self._process.returncode is not None:
                raise BrokerFailed(f"{self._name} ended with status {self._process.returncode} at start{self._why()}")
            if await _answers(bootstrap):
                return
            await asyncio.sleep(0.05)
        raise BrokerFailed(
            f"{self._name} did not answer within {self._start_seconds:.0f} s at {bootstrap}{self._why()}"
        )

    def _why(self) -> str:
        """The last exception that it named, and where to read on."""
        if self._log_file is None:
            return ""
        said = self._log_file.read_bytes()[self._log_start :].decode(errors="replace")
        named = _EXCEPTION.findall(said)
        return f"{': ' + named[-1] if named else ''} (see {self._log_file})"


def free_port(*, other_than: int = 0) -> int:
    """A port nobody listens on, below the range of outgoing connections. Raises BrokerFailed when there is none."""
    start = PORTS.start + (os.getpid() * 7) % len(PORTS)  # two that look at once begin at different places
    for port in (*range(start, PORTS.stop), *range(PORTS.start, start)):
        if port != other_than and is_free(port):
            return port
    raise BrokerFailed(f"no free port in {PORTS.start}-{PORTS.stop}")


def is_free(port: int) -> bool:
    """Whether this host's loopback can listen on it now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


async def _answers(bootstrap: str) -> bool:
    host, port = bootstrap.rsplit(":", 1)
    with socket.socket() as probe:  # first without a client, which would log each failure
        probe.settimeout(1)
        if probe.connect_ex((host, int(port))) != 0:
            return False
    settings = KafkaSettings(bootstrap=bootstrap)
    admin = make_admin(settings)
    try:
        await connect(admin, settings)
    except BrokerUnreachable:
        return False
    await admin.close()
    return True


async def _spawn(command: Sequence[str], output: IO[bytes] | None) -> asyncio.subprocess.Process:
    parent = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True)

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os.kill(os.getpid(), signal.SIGKILL)

    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output or asyncio.subprocess.DEVNULL,
        stderr=output or asyncio.subprocess.DEVNULL,
        preexec_fn=die_with_parent,
        start_new_session=True,  # a Ctrl-C is the parent's to pass on, in its order
    )
