"""Keeps a set of roles running: starts them, restarts what dies, ends them in order. Knows nothing of what they do.

    startup → supervise until `stop` or a role is done → stop, last started first unless an order is given

A role that dies is started again after a wait that doubles, a bounded number of times in a window; then the run ends
with RoleFailed, whose message is the last word: which role, how it ended, its log and the log's last lines.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headwater.errors import RoleFailed
from headwater.run.processes import (
    RestartBudget,
    RoleSpec,
    describe_exit,
    kill_session,
    last_lines,
    start_process,
    stop_process,
)

REFUSED = 78
"""A role's exit status (EX_CONFIG) for what a restart cannot mend: a wrong setting, a newer incarnation, no nsjail."""


@dataclass(slots=True)
class _Child:
    spec: RoleSpec
    budget: RestartBudget
    process: asyncio.subprocess.Process | None = None
    watcher: asyncio.Task[None] | None = None
    restarts: int = 0
    stopping: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """The role ended by itself with status 0."""


class Supervisor:
    """Starts roles and watches them. `failed` resolves when one cannot be kept running."""

    def __init__(self, *, on_restart: Callable[[str, str], None], budget: Callable[[], RestartBudget] = RestartBudget):
        """`on_restart(role, how it ended)` is called at each death that a restart follows."""
        self._on_restart = on_restart
        self._budget = budget
        self._children: dict[str, _Child] = {}
        self._failure: asyncio.Future[RoleFailed] = asyncio.get_running_loop().create_future()

    @property
    def restarts(self) -> dict[str, int]:
        return {name: child.restarts for name, child in self._children.items() if child.restarts}

    @property
    def running(self) -> dict[str, int]:
        """Role → process id, of those that run now."""
        return {
            name: child.process.pid
            for name, child in self._children.items()
            if child.process is not None and child.process.returncode is None
        }

    async def start(self, specs: Sequence[RoleSpec], *, may_finish: frozenset[str] = frozenset()) -> None:
        """Start and keep running. Roles in `may_finish` are done when they end with status 0."""
        for spec in specs:
            child = _Child(spec, self._budget())
            self._children[spec.name] = child
            child.process = await start_process(spec)
            child.watcher = asyncio.create_task(self._watch(child, spec.name in may_finish), name=f"watch-{spec.name}")

    async def failed(self) -> RoleFailed:
        """Wait until a role could not be kept running."""
        return await asyncio.shield(self._failure)

    async def finished(self, name: str) -> None:
        """Wait until a role is done."""
        await self._children[name].done.wait()

    async def stop(self, order: Sequence[Sequence[str]]) -> list[str]:
        """End the named roles, one set after the other, then any others. Returns those that had to be killed."""
        named = {name for names in order for name in names}
        rest = [name for name in self._children if name not in named]
        killed: list[str] = []
        for child in self._children.values():
            child.stopping = True  # no restart of a role that dies while others are being ended
        for names in [*order, rest]:
            ended = await asyncio.gather(*(self._stop(name) for name in names if name in self._children))
            killed += [name for name in ended if name]
        return killed

    def kill(self, names: Sequence[str]) -> None:
        """SIGKILL these now, and start none of them again."""
        for child in (self._children[name] for name in names):
            child.stopping = True
            if child.process is not None and child.process.returncode is None:
                kill_session(child.process.pid)

    async def _stop(self, name: str) -> str:
        child = self._children[name]
        child.stopping = True
        killed = False
        if child.process is not None:
            killed = not await stop_process(child.process, child.spec.stop_seconds)
        if child.watcher is not None:
            child.watcher.cancel()
            await asyncio.gather(child.watcher, return_exceptions=True)
        return name if killed else ""

    async def _watch(self, child: _Child, may_finish: bool) -> None:
        name = child.spec.name
        while True:
            assert child.process is not None
            code = await child.process.wait()
            kill_session(child.process.pid)  # its own children, if it was killed
            if child.stopping:
                return
            if code == 0 and may_finish:
                child.done.set()
                return
            how = describe_exit(code)
            wait = None if code == REFUSED else child.budget.next_wait(time.monotonic())
            if wait is None:
                self._fail(child, how)
                return
            child.restarts += 1
            self._on_restart(name, how)
            await asyncio.sleep(wait)
            if child.stopping:
                return
            child.process = await start_process(child.spec)

    def _fail(self, child: _Child, how: str) -> None:
        tail = last_lines(child.spec.log)
        again = f" and was restarted {child.restarts} times" if child.restarts else ""
        message = f"{child.spec.name} ended ({how}){again}; its log is {child.spec.log}"
        if tail:
            message += ", which ends:\n" + "\n".join(f"    {line}" for line in tail.splitlines())
        if not self._failure.done():
            self._failure.set_result(RoleFailed(message))
