"""A broker of its own, for a team or for tests: `headwater broker start`, `stop`, `status`. `Stack` keeps one too.

In its data directory: `lock`, held while it runs, with the process that holds it; `bootstrap`, where it answers.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from headwater.errors import BrokerEnded, HeadwaterError
from headwater.run.processes import RestartBudget, describe_exit
from wire.broker.embedded import EmbeddedKafka
from wire.errors import BrokerFailed
from wire.together import beside

_STOP_SECONDS = 60.0


async def keep(broker: EmbeddedKafka, on_note: Callable[[str], None]) -> NoReturn:
    """Whenever it dies, start it again on its log and ports; clients wait for it.

    Raises BrokerEnded when that is of no use.
    """
    budget = RestartBudget()
    while True:
        how = describe_exit(await broker.wait())
        wait = budget.next_wait(time.monotonic())
        if wait is None:
            raise BrokerEnded(f"the broker ended ({how}) again and again; see {broker.log}")
        on_note(f"the broker ended ({how}) and is started again on its log")
        await asyncio.sleep(wait)
        try:
            await broker.start()
        except BrokerFailed as error:
            raise BrokerEnded(f"the broker ended ({how}) and cannot be started again: {error}") from error


async def serve(data: Path, *, nodes: Literal[1, 3], host: str, port: int, on_note: Callable[[str], None]) -> None:
    """Start it and keep it until SIGINT or SIGTERM.

    Raises HeadwaterError when one runs there already, BrokerFailed, or BrokerEnded when it cannot be kept running.
    """
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    broker = EmbeddedKafka(data, nodes=nodes, host=host, port=port)
    with _holding(data):
        try:
            bootstrap = await broker.start()
            (data / "bootstrap").write_text(bootstrap + "\n")
            on_note(f"Apache Kafka answers at {bootstrap}; its log is in {data}; Ctrl-C ends it")
            await beside(stop.wait(), keep(broker, on_note))
        finally:
            await broker.stop()


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """What is known of the broker on a data directory."""

    process: int | None
    """Who keeps it; None: it does not run."""
    bootstrap: str
    disk_bytes: int


def status(data: Path) -> BrokerStatus:
    """Whether it runs, where, and what it holds. Raises HeadwaterError when there has never been one."""
    if not (data / "lock").exists():
        raise HeadwaterError(f"there is no broker in {data}: `headwater broker start --data {data}`")
    used = sum(path.stat().st_blocks * 512 for path in data.rglob("*") if path.is_file())
    answers = (data / "bootstrap").read_text().strip() if (data / "bootstrap").exists() else ""
    return BrokerStatus(_holder(data), answers, used)


def stop(data: Path) -> None:
    """End it and wait until it has. Raises HeadwaterError when it does not run, or does not end."""
    holder = status(data).process
    if holder is None:
        raise HeadwaterError(f"the broker in {data} does not run")
    os.kill(holder, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while _holder(data) == holder:
        if time.monotonic() > deadline:
            raise HeadwaterError(f"the broker in {data} (process {holder}) has not ended in {_STOP_SECONDS:.0f} s")
        time.sleep(0.05)


@contextmanager
def _holding(data: Path) -> Generator[None]:
    data.mkdir(parents=True, exist_ok=True)
    with (data / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HeadwaterError(f"a broker runs in {data} already (process {_holder(data)})") from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _holder(data: Path) -> int | None:
    with (data / "lock").open() as file:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        return int(file.read())
