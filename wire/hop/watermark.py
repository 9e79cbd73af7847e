"""The commit watermark: how far a partition may be committed while many of its events are in flight."""

import heapq


class Watermark:
    """One partition, from the moment it is assigned until it is revoked.

    `committable` is the offset after the longest run of *delivered* offsets that are all done, so it is
    never past one in flight. Offsets that were never delivered (compacted away, transaction markers)
    are no holes: the log has nothing there.

        delivered 3 4 7 8, done 3 7 8   → committable 4   (4 is in flight)
        done 4                          → committable 9
    """

    def __init__(self) -> None:
        self._in_flight: set[int] = set()
        self._lowest: list[int] = []
        """Heap over `_in_flight`; what is done leaves it lazily."""
        self._highest: int | None = None

    def delivered(self, offset: int) -> bool:
        """Note that `offset` is being handled. False: it was delivered before, and must not be handled again."""
        if self._highest is not None and offset <= self._highest:
            return False
        self._highest = offset
        self._in_flight.add(offset)
        heapq.heappush(self._lowest, offset)
        return True

    def done(self, offset: int) -> None:
        """Note that everything that follows from `offset` is durable. Raises KeyError when it is not in flight."""
        self._in_flight.remove(offset)

    def committable(self, floor: int | None = None) -> int | None:
        """The offset to commit (that of the next event to read), at most `floor`; None: nothing to commit yet."""
        if self._highest is None:
            return None
        while self._lowest and self._lowest[0] not in self._in_flight:
            heapq.heappop(self._lowest)
        watermark = self._lowest[0] if self._lowest else self._highest + 1
        return watermark if floor is None else min(watermark, floor)

    @property
    def in_flight(self) -> int:
        """How many delivered events are not done."""
        return len(self._in_flight)
