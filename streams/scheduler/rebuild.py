"""What a new scheduler reads before it decides anything: the log is its memory (invariant 5)."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from schemas import Event, LogIdentity, Progress, WeightUpdate
from schemas.base import PolicyVersion
from schemas.topics import CONTROL, EVALUATIONS, GENERATIONS, PROGRESS, WEIGHTS, TopicSpec
from streams.scheduler.admission import Admission
from wire.kafka.events import readable
from wire.kafka.log_reader import LogReader
from wire.kafka.records import Place, Record


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where to read on: the next offset of each topic of one partition."""

    control: int
    progress: int
    evaluations: int
    weights: int

    def positions(self) -> dict[Place, int]:
        """As `Tail` takes them."""
        return {
            (CONTROL.name, 0): self.control,
            (PROGRESS.name, 0): self.progress,
            (EVALUATIONS.name, 0): self.evaluations,
            (WEIGHTS.name, 0): self.weights,
        }


async def rebuild(admission: Admission, reader: LogReader, partitions: int, control: int | None) -> Resumed:
    """Bring `admission` to the state of the log. `control`: the committed offset of `control`, if any.

    Raises UpgradeFirst for an event of a newer release, StoredOffsetOutOfRange, BrokerUnreachable.
    """
    for partition in range(partitions):
        await _read(reader, GENERATIONS, partition, admission.rebuild)

    def see_progress(event: Progress | LogIdentity, record: Record) -> None:
        if isinstance(event, Progress):
            admission.on_progress(event)

    progress_next = await _read(reader, PROGRESS, 0, see_progress)
    admission.rebuilt(None)

    def see_weights(event: WeightUpdate, record: Record) -> None:
        admission.on_weights(PolicyVersion(event.incarnation, event.version))

    weights_next = await _read(reader, WEIGHTS, 0, see_weights)
    evaluations_next = await _read_evaluations(reader, admission)
    begin = await reader.begin_offset(CONTROL.name, 0)
    control_next = begin if control is None else control
    if control_next > begin:
        await _read(reader, CONTROL, 0, lambda event, record: admission.restore_control(event), control_next)
    return Resumed(control_next, progress_next, evaluations_next, weights_next)


async def _read[E: Event](
    reader: LogReader,
    topic: TopicSpec[E],
    partition: int,
    take: Callable[[E, Record], None],
    end: int | None = None,
) -> int:
    """Everything from the beginning to `end` (None: the end now); returns the offset to read on from."""
    if end is None:
        end = await reader.end_offset(topic.name, partition)
    start = await reader.begin_offset(topic.name, partition)
    async with aclosing(reader.scan(topic.name, partition, start, end)) as records:
        async for record in records:
            event = readable(record, topic)
            if event is not None:
                take(event, record)
    return end


async def _read_evaluations(reader: LogReader, admission: Admission) -> int:
    """Which evaluation groups have ended. The key says it, whatever the (large) value holds."""
    end = await reader.end_offset(EVALUATIONS.name, 0)
    start = await reader.begin_offset(EVALUATIONS.name, 0)
    async with aclosing(reader.scan(EVALUATIONS.name, 0, start, end)) as records:
        async for record in records:
            admission.on_evaluation(record.key or "")
    return end
