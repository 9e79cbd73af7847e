"""Waiting for several things at once, in one way everywhere."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any

log = logging.getLogger(__name__)


async def beside[T](main: Coroutine[Any, Any, T], *others: Coroutine[Any, Any, Any]) -> T:
    """Run `main` to its end and return what it returns. The others run beside it, may end before, and end with it.

    Raises the first error of any of them, having ended all the rest; also one on the way out, when there was none
    before.
    """
    first = asyncio.ensure_future(main)
    tasks: list[asyncio.Future[Any]] = [first, *map(asyncio.ensure_future, others)]
    running = set(tasks)
    failed: list[BaseException] = []
    try:
        while first in running and not failed:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            failed = _errors(task for task in tasks if task in done)
    finally:
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
    failed += _errors(task for task in tasks if task in running)
    for error in failed[1:]:
        log.warning("and on the way out: %r", error)
    if failed:
        raise failed[0]
    return first.result()


def _errors(tasks: Iterable[asyncio.Future[Any]]) -> list[BaseException]:
    found = [task.exception() for task in tasks if not task.cancelled()]
    return [error for error in found if error is not None]
