"""The roles as processes, and a stand-in for the learner."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from schemas import Event, GroupDropped, PolicyVersion, Trajectory
from tests.integration.streams.events import Window, progress, weights, writer
from tests.integration.streams.role import BATCH_GROUPS
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import read_log_id

STOP_SECONDS = 40.0


class Roles:
    """Starts, kills and restarts roles. What they print is in `<directory>/<role>.log`."""

    def __init__(self, settings: KafkaSettings, directory: Path) -> None:
        self._settings = settings
        self._directory = directory
        self._running: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, name: str) -> None:
        with (self._directory / f"{name}.log").open("ab") as log:
            self._running[name] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.integration.streams.role", name, str(self._directory)),
                env=os.environ | self._settings.to_environment(),
                stdout=log,
                stderr=log,
            )

    async def kill(self, name: str) -> None:
        """As the kernel would: no goodbye."""
        process = self._running.pop(name)
        assert process.returncode is None, f"{name} ended by itself, see {self._directory}/{name}.log"
        process.send_signal(signal.SIGKILL)
        await process.wait()

    async def stop(self) -> dict[str, int]:
        """Ask all to end, and return their exit statuses."""
        for process in self._running.values():
            if process.returncode is None:
                process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                return {name: await process.wait() for name, process in self._running.items()}
        except TimeoutError:
            for process in self._running.values():
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            raise


@asynccontextmanager
async def roles(settings: KafkaSettings, directory: Path, names: Sequence[str]) -> AsyncGenerator[Roles]:
    """All of them running; they must end well."""
    running = Roles(settings, directory)
    try:
        for name in names:
            await running.start(name)
        yield running
    finally:
        statuses = await running.stop()
    assert set(statuses.values()) == {0}, f"{statuses}, see {directory}/*.log"


class Learner:
    """Ends every group that comes, and publishes new weights after each batch."""

    def __init__(self, settings: KafkaSettings, directory: Path, log: Window) -> None:
        self.ends: dict[int, list[Event]] = {}
        """Admission number -> every end that came, in order."""
        self.version = 0
        self._settings = settings
        self._directory = directory
        self._log = log

    async def run(self) -> None:
        """Until cancelled."""
        log_id = await read_log_id(self._settings)
        async with writer(self._settings, "learner") as out:
            await out.send_all([weights(self._directory, 1, 0), progress(log_id)])
            read = 0
            while True:
                seen = len(self._log.records)
                await self._log.until(lambda log, seen=seen: len(log.records) > seen, seconds=10**6)
                events, read = self._log.events[read:], len(self._log.records)
                for event in events:
                    if isinstance(event, Trajectory | GroupDropped) and event.admission_number is not None:
                        self.ends.setdefault(event.admission_number, []).append(event)
                if len(self.ends) // BATCH_GROUPS > self.version:
                    self.version = len(self.ends) // BATCH_GROUPS
                    await out.send(weights(self._directory, *PolicyVersion(1, self.version)))
                low = next(number for number in range(len(self.ends) + 1) if number not in self.ends)
                above = tuple(sorted(number for number in self.ends if number > low))
                await out.send(progress(log_id, low, ended_above=above, version=self.version, updated_at=time.time()))
