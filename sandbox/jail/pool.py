"""Jails started ahead of need, and given back for the next job.

    starting ahead ──► idle ──take──► with a job ──give back──► idle … until `jobs_per_jail`, or lost: killed

A jail given back holds nothing of its job: no process, and file systems that are replaced before the
next one. Idle jails are kept by language, the longest unused ended first when there are too many.
"""

import asyncio
import itertools
from collections import deque

from sandbox.errors import SandboxUnavailable
from sandbox.jail.jails import Jail, Site
from sandbox.languages.toolchains import Toolchain


class Pool:
    """All the jails of one Judge."""

    def __init__(self, site: Site, size: int, jobs_per_jail: int, ahead: Toolchain | None) -> None:
        self.site = site
        self.size = size
        self.jobs_per_jail = jobs_per_jail
        self.ahead = ahead
        self._numbers = itertools.count()
        self._idle: deque[Jail] = deque()
        self._starting: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._lent: set[Jail] = set()
        self._closed = False

    async def open(self) -> None:
        """Start the first jails; the first of all alone, so that a host that cannot says so once."""
        if self.ahead is not None:
            self._idle.append(await self._start(self.ahead))
            self._refill()

    async def take(self, toolchain: Toolchain) -> Jail:
        """Take an idle jail of this language, or start one."""
        for jail in reversed(self._idle):
            if jail.toolchain is toolchain:
                self._idle.remove(jail)
                break
        else:
            jail = await self._start(toolchain)
        self._lent.add(jail)
        return jail

    def give_back(self, jail: Jail) -> None:
        """Take a jail back from a job that ended in order."""
        self._lent.discard(jail)
        if jail.dead:
            self._refill()
        elif jail.jobs >= self.jobs_per_jail or self._closed:
            self._end(jail)
            self._refill()
        else:
            self._idle.append(jail)
            if len(self._idle) > 2 * self.size:
                self._end(self._idle.popleft())

    async def discard(self, jail: Jail) -> None:
        """End a jail whose state is not known."""
        self._lent.discard(jail)
        await jail.kill()
        self._refill()

    async def close(self) -> None:
        """End every jail."""
        self._closed = True
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        await asyncio.gather(*(jail.kill() for jail in (*self._idle, *self._lent)), *self._ending)
        self._idle.clear()

    async def _start(self, toolchain: Toolchain) -> Jail:
        jail = Jail(self.site, toolchain, next(self._numbers))
        try:
            await jail.start()
        except BaseException:
            await jail.kill()
            raise
        return jail

    def _refill(self) -> None:
        """Start jails ahead, as many as could be wanted at once."""
        if self.ahead is None or self._closed:
            return
        ready = sum(jail.toolchain is self.ahead for jail in (*self._idle, *self._lent)) + len(self._starting)
        for _ in range(self.size - ready):
            task = asyncio.create_task(self._start_ahead(self.ahead))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start_ahead(self, toolchain: Toolchain) -> None:
        try:
            jail = await self._start(toolchain)
        except SandboxUnavailable:
            return  # the job that needs one starts it itself, and tells why it cannot
        if self._closed:
            await jail.kill()
        else:
            self._idle.append(jail)

    def _end(self, jail: Jail) -> None:
        task = asyncio.create_task(jail.kill())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
