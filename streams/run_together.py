"""Several coroutines as one: the first that ends, well or badly, ends them all."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_together(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Run them until one ends, then cancel the others and wait for them.

    Raises what the first one to fail raised. An error on the way out counts when there was none before.
    """
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        failed = [task for task in tasks if task.done() and not task.cancelled() and task.exception()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in failed or tasks:
        if not task.cancelled():
            task.result()
