"""Stand-ins for the boundary: a publisher that remembers, a hop that does what it is told."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from schemas import Context, ExactGrader, Reward, Rollout, Task
from schemas.codec import encode
from schemas.topics import ROLLOUTS, topic_spec
from wire.hop.hop import Hop
from wire.hop.inflight import FILE_NAME, SLOT_BYTES
from wire.kafka.dead_letters import DeadLetterKind
from wire.kafka.publisher import Publisher, RecordMetadata
from wire.kafka.records import Outgoing, Record
from wire.kafka.settings import KafkaSettings

SETTINGS = KafkaSettings(bootstrap="127.0.0.1:1")


class MemoryPublisher(Publisher):
    """Keeps what was sent; refuses what is too large, as the real one does."""

    def __init__(self) -> None:
        super().__init__(SETTINGS, "dispatch")
        self.sent: list[Outgoing] = []
        self.letters: list[tuple[Record, str, int, DeadLetterKind]] = []

    async def send_all(self, outs: Sequence[Outgoing]) -> list[RecordMetadata]:
        for out in outs:
            encode(out.event, topic_spec(out.topic))
        self.sent += outs
        return [RecordMetadata(0, 0) for _ in outs]

    async def dead_letter(
        self,
        record: Record,
        reason: str,
        attempts: int = 1,
        *,
        kind: DeadLetterKind = DeadLetterKind.MALFORMED,
        first_seen: float | None = None,
    ) -> RecordMetadata:
        self.letters.append((record, reason, attempts, kind))
        return RecordMetadata(0, 0)


class ToldHop(Hop[Rollout]):
    """Calls `does` for each event, and says in rewards what became of it."""

    name = "dispatch"
    topics = (ROLLOUTS,)

    def __init__(self, does: Callable[[Rollout], Awaitable[None]] | None = None, concurrency: int = 1) -> None:
        self._does = does
        self.concurrency = concurrency
        self.handled: list[int] = []

    async def handle(self, event: Rollout, record: Record) -> Sequence[Outgoing]:
        if self._does is not None:
            await self._does(event)
        self.handled.append(record.offset)
        return [reward(event, "handled")]

    def poisoned(self, event: Rollout, record: Record) -> Sequence[Outgoing]:
        return [reward(event, "poisoned")]

    def exhausted(self, event: Rollout, record: Record, reason: str) -> Sequence[Outgoing]:
        return [reward(event, f"exhausted: {reason}")]


def reward(rollout: Rollout, feedback: str) -> Outgoing:
    context = Context(
        group_id=rollout.group_id,
        sample_index=rollout.sample_index,
        digest=rollout.digest,
        domain=rollout.task.domain,
        prompt_id=rollout.task.prompt_id,
    )
    return Outgoing("rewards", rollout.group_id, Reward(context=context, reward=1.0, feedback=feedback))


def rollout(group: str, index: int = 0, text: str = "42") -> Rollout:
    task = Task(prompt_id="p", domain="sums", grader=ExactGrader(answer="42"))
    return Rollout(rollout_id=f"{group}-{index}", group_id=group, sample_index=index, task=task, text=text)


def record(value: bytes | Rollout, offset: int = 0, *, topic: str = "rollouts", writer: str = "rollout") -> Record:
    raw = value if isinstance(value, bytes) else encode(value, topic_spec(topic))
    headers = {"writer": writer.encode()} if writer else {}
    return Record(topic, 0, offset, "g", raw, headers, 1_700_000_000_000)


def files_in(directory: Path) -> list[Path]:
    """Every file below it."""
    return [path for path in directory.rglob("*") if path.is_file()]


def marks_in(directory: Path) -> int:
    """How many events a journal in this directory has as being handled."""
    marks = (directory / FILE_NAME).read_bytes()
    return sum(any(marks[slot : slot + 2]) for slot in range(0, len(marks), SLOT_BYTES))
