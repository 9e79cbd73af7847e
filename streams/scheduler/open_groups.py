"""Groups that were admitted and have not ended, and the cancels that end them early. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from schemas import Cancel, CancelRequest, DropReason, Generation
from schemas.topics import GENERATIONS
from wire.kafka.records import Outgoing

EVALUATION_GRACE_SECONDS = 60.0
"""After its deadline an evaluation group holds its place this much longer for its end to come."""


@dataclass(slots=True)
class _Open:
    group_id: str
    partition: int
    number: int | None
    prompt_id: str
    gives_up_at: float
    cancelled: bool = False


class OpenGroups:
    """Bounded by admission itself. A group is cancelled once."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._open: dict[str, _Open] = {}
        self._cancels: list[Outgoing] = []

    @property
    def evaluations(self) -> int:
        return sum(group.number is None for group in self._open.values())

    def add(self, generation: Generation, partition: int) -> None:
        deadline = generation.admitted_at + generation.deadline_seconds
        self._open[generation.group_id] = _Open(
            generation.group_id,
            partition,
            generation.admission_number,
            generation.prompt_id,
            deadline + EVALUATION_GRACE_SECONDS,
        )

    def was_cancelled(self, group_id: str) -> None:
        """By a scheduler before this one."""
        if group_id in self._open:
            self._open[group_id].cancelled = True

    def end(self, group_id: str) -> None:
        self._open.pop(group_id, None)

    def end_numbers(self, has_ended: Callable[[int], bool]) -> None:
        """Of the train groups, those whose number `has_ended`."""
        self._drop(lambda group: group.number is not None and has_ended(group.number))

    def forget_late_evaluations(self, now: float) -> None:
        """Nobody says of these that they have ended."""
        self._drop(lambda group: group.number is None and group.gives_up_at < now)

    def cancel(self, request: CancelRequest) -> None:
        for key, group in self._open.items():
            if request.group_id in (None, key) and request.prompt_id in (None, group.prompt_id):
                self._cancel(group, DropReason.CANCELLED)

    def cancel_training(self) -> None:
        """The run ends."""
        for group in self._open.values():
            if group.number is not None:
                self._cancel(group, DropReason.RUN_ENDED)

    def take_cancels(self) -> list[Outgoing]:
        """To be published now."""
        cancels, self._cancels = self._cancels, []
        return cancels

    def _cancel(self, group: _Open, reason: DropReason) -> None:
        if group.cancelled:
            return
        group.cancelled = True
        cancel = Cancel(
            run_id=self._run_id,
            group_id=group.group_id,
            reason=reason.value,
            admission_number=group.number,
        )
        self._cancels.append(Outgoing(GENERATIONS.name, group.group_id, cancel, group.partition))

    def _drop(self, over: Callable[[_Open], bool]) -> None:
        self._open = {key: group for key, group in self._open.items() if not over(group)}
