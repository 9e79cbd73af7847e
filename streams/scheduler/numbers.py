"""Admission numbers: they rise without gaps, and say which groups have ended. Pure."""

from collections.abc import Container

from schemas import Progress


def has_ended(progress: Progress | None, number: int) -> bool:
    """Whether the learner says so of the train group with this admission number."""
    return progress is not None and (number < progress.ended_low or number in progress.ended_above)


class Numbers:
    """Which admission number comes next. Those that a crash left out are given first."""

    def __init__(self) -> None:
        self._next = 0
        self._missing: list[int] = []
        """Below the next, and no generation on the log has it (a crash amid a concurrent send)."""

    def rebuild(self, on_log: Container[int], highest: int, progress: Progress | None) -> None:
        """Go on after the log. `on_log`: the numbers of the generations there, `highest` of them (-1: none)."""
        ended = [progress.ended_low - 1, *progress.ended_above] if progress else [-1]
        self._next = max(highest, *ended) + 1
        # a number is missing only if nobody has it: one whose generation expired has ended long ago
        self._missing = [
            number
            for number in range(progress.ended_low if progress else 0, self._next)
            if number not in on_log and not has_ended(progress, number)
        ]

    @property
    def given(self) -> int:
        """How many groups have one."""
        return self._next - len(self._missing)

    def take(self) -> int:
        """The number of the group that is admitted now."""
        if self._missing:
            return self._missing.pop(0)
        self._next += 1
        return self._next - 1
