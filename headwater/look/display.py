"""Shows a run while it goes on: a live screen on a terminal, plain lines elsewhere."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from headwater.look.live import line, screen
from headwater.look.observe import Observer
from wire.errors import WireError

log = logging.getLogger(__name__)

SCREEN_SECONDS = 2.0
LINE_SECONDS = 10.0


class Display:
    """What `up` says. Notes are kept for the screen, printed as lines elsewhere, and written down."""

    def __init__(self, console: Console, log_file: Path) -> None:
        self.console = console
        self._log_file = log_file
        self.phase = "starting"
        self._notes: deque[str] = deque(maxlen=3)
        self._live: Live | None = None

    def note(self, text: str) -> None:
        """Something that a person should know."""
        self._notes.append(f"{time.strftime('%H:%M:%S')} {text}")
        with self._log_file.open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
        if self._live is None:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def enter(self, phase: str) -> None:
        """A new part of the run has begun."""
        self.phase = phase
        if self._live is None:
            self.console.print(f"— {phase}", markup=False, highlight=False)

    @asynccontextmanager
    async def watching(self, observer: Observer, restarts: Callable[[], Mapping[str, int]]) -> AsyncGenerator[None]:
        """Show the run while the body runs."""
        async with observer:
            if self.console.is_terminal:
                with Live(console=self.console, auto_refresh=False, transient=False) as self._live:
                    try:
                        async with _beside(self._show(observer, restarts, SCREEN_SECONDS)):
                            yield
                    finally:
                        self._live = None
            else:
                async with _beside(self._show(observer, restarts, LINE_SECONDS)):
                    yield

    async def _show(self, observer: Observer, restarts: Callable[[], Mapping[str, int]], seconds: float) -> None:
        while True:
            try:
                view = await observer.view(phase=self.phase, restarts=restarts(), notes=tuple(self._notes))
            except WireError as error:  # the broker is gone: whoever supervises it says so
                log.debug("the screen stands still: %s", error)
                return
            if self._live is not None:
                self._live.update(screen(view), refresh=True)
            else:
                self.console.print(line(view), markup=False, highlight=False, soft_wrap=True)
            await asyncio.sleep(seconds)


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
