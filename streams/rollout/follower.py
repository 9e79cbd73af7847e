"""Which weights the engine holds: the newest ones, unless an evaluation group holds it at a version of its own.

    weights ─► offer ─► newest ─┐
                                ├─► next ─► fetch (digests checked) ─► engine.load ─► announced
    hold(version) ─► waiting ───┘

Train groups wait for the version that was the newest when they were admitted, and take whatever is loaded from then
on; their spans say which version that was. An evaluation group waits until
exactly its version is loaded and keeps it there until it ends; then the engine goes on to the next version waited for,
or to the newest. A version whose bytes are wrong or gone changes nothing: the engine keeps what it has. One whose bytes
are right and do not fit the model never will: it ends the worker, with the reason.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from schemas import PolicyVersion, WeightUpdate
from streams.rollout.engines.base import Engine, ModelRefused
from wire.errors import SnapshotMismatch

log = logging.getLogger(__name__)

ATTEMPTS_FOR_EVALUATION = 5
"""Tries at an older snapshot before the groups that wait for it are told that it is gone."""
FALLBACK_VERSIONS = 3
"""The newest version and so many less one before it are tried, until one can be had."""
FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 30.0
KNOWN_UPDATES = 1024
"""Manifests remembered, newest first: far more than any learner keeps snapshots."""


class VersionGone(Exception):
    """The version that a group asks for can be had no more."""


@dataclass
class _Failures:
    """What became of one version's tries."""

    count: int
    retry_at: float
    """In the event loop's time."""


@dataclass(eq=False)
class _Waiting:
    """A group that waits for its version."""

    version: PolicyVersion
    granted: asyncio.Future[None]


class PolicyFollower:
    """Belongs to one engine and one event loop. `run` does the loading; everything else only asks for it."""

    def __init__(
        self,
        engine: Engine,
        fetch: Callable[[WeightUpdate], Awaitable[Path]],
        *,
        on_loaded: Callable[[WeightUpdate], None],
        on_failure: Callable[[WeightUpdate], None],
    ) -> None:
        """`fetch` gives a directory whose bytes are those of the manifest, or raises SnapshotMismatch or OSError.

        `on_loaded` announces a version: every byte of it is in place. `on_failure` counts one that could not be had.
        """
        self._engine = engine
        self._fetch = fetch
        self._on_loaded = on_loaded
        self._on_failure = on_failure
        self._updates: dict[PolicyVersion, WeightUpdate] = {}
        self._newest: PolicyVersion | None = None
        self._loaded: PolicyVersion | None = None
        self._failures: dict[PolicyVersion, _Failures] = {}
        self._holders: Counter[PolicyVersion] = Counter()
        self._waiting: list[_Waiting] = []
        self._changed = asyncio.Event()
        self._tried = asyncio.Event()
        """Set, and made anew, when a load has succeeded or failed."""

    @property
    def loaded(self) -> PolicyVersion | None:
        """The version last announced; None before the first."""
        return self._loaded

    def offer(self, update: WeightUpdate) -> None:
        """A manifest from the stream, in any order. Of a lower incarnation it serves only groups that ask for it."""
        version = PolicyVersion(update.incarnation, update.version)
        self._updates[version] = update
        self._failures.pop(version, None)
        if self._newest is None or version > self._newest:
            self._newest = version
        while len(self._updates) > KNOWN_UPDATES:
            del self._updates[min(self._updates)]
        self._changed.set()

    async def at_least(self, version: PolicyVersion | None) -> None:
        """Return once `version` or a newer one is loaded; None: once any is. Before that nothing may be sampled.

        A version that cannot be had is not waited for: what is loaded then is older, and says so.
        """
        while self._loaded is None or (
            version is not None and self._loaded < version and version not in self._failures
        ):
            await self._tried.wait()

    @asynccontextmanager
    async def hold(self, version: PolicyVersion) -> AsyncGenerator[None]:
        """Wait until exactly `version` is loaded, and keep it there inside. Raises VersionGone."""
        waiting = _Waiting(version, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._changed.set()
        try:
            await waiting.granted
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            elif not waiting.granted.cancelled() and waiting.granted.exception() is None:
                self._release(version)  # granted, but this task was cancelled before it could go on
            raise
        try:
            yield
        finally:
            self._release(version)

    async def run(self) -> None:
        """Load what is asked for, until cancelled.

        Raises EngineError when the engine fails, ModelRefused for weights that are not its model's.
        """
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            self._answer()
            update = self._next(loop.time())
            if update is not None:
                await self._load(update)
                continue
            try:
                async with asyncio.timeout(self._seconds_to_retry(loop.time())):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _release(self, version: PolicyVersion) -> None:
        self._holders[version] -= 1
        if not self._holders[version]:
            del self._holders[version]
        self._changed.set()

    def _answer(self) -> None:
        """Tell the groups whose version is there, or will never be."""
        for waiting in list(self._waiting):
            if waiting.granted.cancelled():
                self._waiting.remove(waiting)
            elif waiting.version == self._loaded:
                self._waiting.remove(waiting)
                self._holders[waiting.version] += 1
                waiting.granted.set_result(None)
            elif reason := self._gone(waiting.version):
                self._waiting.remove(waiting)
                waiting.granted.set_exception(VersionGone(reason))

    def _gone(self, version: PolicyVersion) -> str | None:
        """Why a version will never be loaded; None while it may."""
        failures = self._failures.get(version)
        if failures is not None and failures.count >= ATTEMPTS_FOR_EVALUATION:
            return f"the snapshot of version {version} cannot be had after {failures.count} tries"
        if version in self._updates or self._newest is None or version > self._newest:
            return None
        return f"version {version} was never announced here, and {self._newest} has been since"

    def _next(self, now: float) -> WeightUpdate | None:
        """What to load now. A held version stays; groups that wait go first, in their order; then the newest."""
        if self._holders:
            return None
        for version in (*(waiting.version for waiting in self._waiting), *self._newer_than_loaded()):
            failures = self._failures.get(version)
            if version != self._loaded and version in self._updates and (failures is None or failures.retry_at <= now):
                return self._updates[version]
        return None

    def _newer_than_loaded(self) -> list[PolicyVersion]:
        """The newest version, and then what comes closest to it, should it not be had."""
        newest = self._newest
        if newest is None:
            return []
        of_its_life = [version for version in self._updates if version.incarnation == newest.incarnation]
        better = [version for version in of_its_life if self._loaded is None or version > self._loaded]
        return sorted(better, reverse=True)[:FALLBACK_VERSIONS]

    def _seconds_to_retry(self, now: float) -> float | None:
        later = [failures.retry_at - now for failures in self._failures.values() if failures.retry_at > now]
        return min(later, default=None)

    async def _load(self, update: WeightUpdate) -> None:
        version = PolicyVersion(update.incarnation, update.version)
        try:
            directory = await self._fetch(update)
            await self._engine.load(directory, *version)
        except (SnapshotMismatch, OSError) as error:
            self._fail(version, error)
            self._on_failure(update)
        except ValueError as error:
            self._on_failure(update)
            raise ModelRefused(f"the weights {version} are not of the model that is sampled with: {error}") from error
        else:
            self._failures.pop(version, None)
            self._loaded = version
            self._on_loaded(update)
        self._tried.set()
        self._tried = asyncio.Event()

    def _fail(self, version: PolicyVersion, error: Exception) -> None:
        count = 1 + (self._failures[version].count if version in self._failures else 0)
        seconds = min(FIRST_RETRY_SECONDS * 2 ** (count - 1), LONGEST_RETRY_SECONDS)
        self._failures[version] = _Failures(count, asyncio.get_running_loop().time() + seconds)
        log.error("weights %s are not loaded, %s stays; next try in %.1f s: %s", version, self._loaded, seconds, error)
