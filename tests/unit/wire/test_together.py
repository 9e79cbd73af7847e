"""What runs beside something else ends with it, and no error is lost."""

import asyncio
import logging

import pytest

from wire.together import beside


class Work:
    """A coroutine that notes how it ended."""

    def __init__(self, error: Exception | None = None, on_the_way_out: Exception | None = None) -> None:
        self.ended = ""
        self._error = error
        self._on_the_way_out = on_the_way_out

    async def for_ever(self) -> None:
        try:
            if self._error is not None:
                raise self._error
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            if self._on_the_way_out is not None:
                raise self._on_the_way_out from None
            raise


async def soon(value: int = 7) -> int:
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return value


async def test_others_end_with_the_main_work_whose_result_comes_back() -> None:
    other = Work()
    assert await beside(soon(), other.for_ever(), soon()) == 7
    assert other.ended == "cancelled"


async def test_an_other_may_end_before() -> None:
    first = asyncio.Event()

    async def sets() -> None:
        first.set()

    assert await beside(first.wait(), sets()) is True


async def test_the_first_error_ends_all() -> None:
    waits = Work()
    with pytest.raises(ValueError, match="first"):
        await beside(waits.for_ever(), Work(ValueError("first")).for_ever())
    assert waits.ended == "cancelled"


async def test_an_error_on_the_way_out_counts_when_it_is_the_only_one(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OSError, match="late"):
        await beside(soon(), Work(on_the_way_out=OSError("late")).for_ever())
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="first"):
        await beside(Work(on_the_way_out=OSError("late")).for_ever(), Work(ValueError("first")).for_ever())
    assert "late" in caplog.text


async def test_cancelled_from_outside_it_ends_all_first() -> None:
    main, other = Work(), Work()
    task = asyncio.create_task(beside(main.for_ever(), other.for_ever()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (main.ended, other.ended) == ("cancelled", "cancelled")
