"""Small events and a window on the log, for the tests of the shells."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from schemas import Event, ExactGrader, Generation, Message, Progress, Prompt, Purpose, Sampling, WeightUpdate
from schemas.codec import decode
from schemas.topics import topic_spec
from wire.hop.hop import Hop
from wire.hop.shell import hop_runner
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing, Record
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.kafka.topics import existing_topics
from wire.metrics import Metrics
from wire.weights.snapshots import describe

RUN = "run"
WAIT_SECONDS = 30.0
"""Far above what anything here takes on two busy cores."""


def prompt(name: str, *, domain: str = "a", text: str = "hello", **rest: Any) -> Outgoing:
    """A prompt that the answer `yes` satisfies."""
    rest.setdefault("group_size", 2)
    event = Prompt(
        id=name,
        domain=domain,
        messages=(Message(role="user", content=text),),
        grader=ExactGrader(answer="yes"),
        **rest,
    )
    return Outgoing(f"prompts.{domain}", name, event)


def generation(name: str, number: int | None = 0, **rest: Any) -> Outgoing:
    """An admitted group, as the scheduler writes it."""
    values: dict[str, Any] = {
        "run_id": RUN,
        "purpose": Purpose.TRAIN if number is not None else Purpose.EVALUATE,
        "group_id": name,
        "log_id": "log",
        "admission_number": number,
        "prompt_id": name,
        "domain": "a",
        "messages": (Message(role="user", content="hello"),),
        "grader": ExactGrader(answer="yes"),
        "num_samples": 2,
        "sampling": Sampling(),
        "admitted_at": time.time(),
        "deadline_seconds": 60.0,
        "prompt_topic": "prompts.a",
        "prompt_partition": 0,
        "prompt_offset": 0,
        "rollouts_end_offset": 0,
    }
    return Outgoing("generations", name, Generation(**values | rest))


def progress(log_id: str, ended: int = 0, *, incarnation: int = 1, **rest: Any) -> Outgoing:
    """A learner for whom the first `ended` groups are over."""
    event = Progress(
        run_id=RUN, log_id=log_id, incarnation=incarnation, version=rest.pop("version", 0), ended_low=ended, **rest
    )
    return Outgoing("progress", f"{RUN},{incarnation}", event)


def weights(directory: Path, incarnation: int, version: int) -> Outgoing:
    """A published version whose snapshot, a stand-in, is in `directory`."""
    snapshot = directory / f"weights-{incarnation}-{version}"
    snapshot.mkdir(exist_ok=True)
    (snapshot / "model.safetensors").write_text(f"weights {incarnation}.{version}")
    event = WeightUpdate(
        run_id=RUN,
        model="m",
        incarnation=incarnation,
        version=version,
        snapshot=describe(snapshot, version),
        published_at=time.time(),
    )
    return Outgoing("weights", f"m,{incarnation}", event)


class Window:
    """Everything on some topics, as it comes."""

    def __init__(self, tail: Tail) -> None:
        self.records: list[Record] = []
        self._tail = tail

    @property
    def events(self) -> list[Any]:
        """Decoded, in the order read. Not for `dead-letters`, which hold what cannot be decoded."""
        return [self.event(record) for record in self.records]

    def event(self, record: Record) -> Event:
        return decode(record.value, topic_spec(record.topic))

    def of(self, *kinds: type[Event]) -> list[Any]:
        """The events of these kinds."""
        return [event for event in self.events if isinstance(event, kinds)]

    async def until(self, enough: Callable[["Window"], bool], seconds: float = WAIT_SECONDS) -> None:
        """Read on until `enough`; fails with what is there when the time is over."""
        deadline = time.monotonic() + seconds
        while not enough(self):
            assert time.monotonic() < deadline, f"waited {seconds} s; on the log: {self.records}"
            self.records += await self._tail.poll(0.1)

    async def quiet(self, seconds: float = 0.7) -> None:
        """Read whatever comes within a time in which more would have come."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.records += await self._tail.poll(0.1)


async def eventually(holds: Callable[[], Awaitable[bool]], seconds: float = WAIT_SECONDS) -> None:
    """Ask again until it holds; fails when the time is over."""
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 - what is waited for is in the broker
            await asyncio.sleep(0.05)


@asynccontextmanager
async def window(settings: KafkaSettings, *topics: str) -> AsyncGenerator[Window]:
    """A window on topics, from their first record on."""
    partitions = await existing_topics(settings)
    start = {(topic, number): 0 for topic in topics for number in range(partitions[topic])}
    async with Tail(settings, start) as tail:
        yield Window(tail)


@asynccontextmanager
async def writer(settings: KafkaSettings, name: str = "user") -> AsyncGenerator[Publisher]:
    """Writes as a user, or as one of the roles."""
    async with Publisher(settings, name) as publisher:
        yield publisher


@asynccontextmanager
async def living(role: Callable[[asyncio.Event], Any]) -> AsyncGenerator[asyncio.Task[None]]:
    """Run a role beside the test; what it raises fails the test, and it must stop when told to."""
    stop = asyncio.Event()
    task: asyncio.Task[None] = asyncio.create_task(role(stop))
    try:
        yield task
    finally:
        stop.set()
        async with asyncio.timeout(WAIT_SECONDS):
            await task


async def run_hop_alone(
    hop: Hop,
    settings: KafkaSettings,
    *,
    stop: asyncio.Event,
    instance_id: str,
    state_directory: Path,
    metrics: Metrics,
) -> None:
    """A hop that owns all partitions from their beginning, without a consumer group and its commits.

    What a hop does with its events shows without.
    """
    partitions = await existing_topics(settings)
    start = {(topic.name, number): 0 for topic in hop.topics for number in range(partitions[topic.name])}
    async with hop_runner(hop, settings, metrics, state_directory) as runner, Tail(settings, start) as tail:
        runner.assigned(start)
        while not stop.is_set() and not runner.failed.is_set():
            for record in await tail.poll(0.1):
                lease = runner.lease(record.topic, record.partition)
                assert lease is not None
                await runner.deliver(lease, record)
        if runner.failure is not None:
            raise runner.failure
