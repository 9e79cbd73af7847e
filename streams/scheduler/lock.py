"""One scheduler in a run directory: the first holds the lock, the next stands by until it dies (invariant 5)."""

import asyncio
import fcntl
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

log = logging.getLogger(__name__)

STANDBY_POLL_SECONDS = 0.2
"""How soon a standby notices that the lock is free: the kernel frees it when its holder dies."""


@asynccontextmanager
async def sole_scheduler(path: Path, stop: asyncio.Event) -> AsyncGenerator[bool]:
    """Wait for the lock. Yields True holding it, or False when `stop` was set first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        held = _try_lock(descriptor)
        if not held:
            log.info("another scheduler holds %s: standing by", path)
        while not held and not stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(STANDBY_POLL_SECONDS):
                    await stop.wait()
            held = _try_lock(descriptor)
        yield held and not stop.is_set()
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
