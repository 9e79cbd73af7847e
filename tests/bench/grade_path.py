"""The grade path with a trivial grader (rollouts → dispatch → verdicts → reward → rewards) against a bare chain of two
aiokafka hops in two processes, on one broker: rollouts a second, and how long one takes without a queue.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic

from headwater.run.processes import RoleSpec, headwater_command, start_process, stop_process
from schemas import ExactGrader, PolicyVersion, Purpose, Rollout, Task, TokenSpan
from schemas.codec import encode
from schemas.ids import rollout_digest, rollout_id
from schemas.tokens import pack_logprobs, pack_token_ids
from schemas.topics import REWARDS, ROLLOUTS
from tests.bench.measure import Measurement, alternate, cpu_seconds, memory_bytes, percentile
from tests.bench.output import steps
from wire.broker.embedded import EmbeddedKafka
from wire.kafka.clients import make_admin, make_producer
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import apply_topics

PARTITIONS = 4
PROMPT_TOKENS, ANSWER_TOKENS = 60, 60
READY_SECONDS = 180
ROUND_SECONDS = 300
BARE_TOPICS = ("bare.0", "bare.1", "bare.2")


class Event(NamedTuple):
    key: bytes
    value: bytes


class Chain:
    """A way from one topic to another through processes of its own."""

    def __init__(
        self, producer: AIOKafkaProducer, reader: AIOKafkaConsumer, source: str, target: str, pids: dict[str, int]
    ) -> None:
        self.pids = pids
        self.cpu: dict[str, float] = dict.fromkeys(pids, 0.0)
        """CPU seconds of each process over all bursts."""
        self._producer, self._reader, self._source, self._target = producer, reader, source, target

    async def start(self) -> None:
        """Wait until events come through, and read from there on."""
        self._reader.assign([TopicPartition(self._target, number) for number in range(PARTITIONS)])
        await self._reader.seek_to_beginning()
        warm = events(PARTITIONS * 8)
        async with asyncio.timeout(READY_SECONDS):
            await self._through(warm, interval_seconds=0)

    async def burst(self, sent: Sequence[Event]) -> float:
        """Send all at once; returns seconds until the last has come out."""
        before = {name: cpu_seconds(pid) for name, pid in self.pids.items()}
        start = time.perf_counter()
        async with asyncio.timeout(ROUND_SECONDS):
            await self._through(sent, interval_seconds=0)
        seconds = time.perf_counter() - start
        for name, pid in self.pids.items():
            self.cpu[name] += cpu_seconds(pid) - before[name]
        return seconds

    async def latencies(self, sent: Sequence[Event], interval_seconds: float) -> list[float]:
        """Send one an interval; returns the seconds from each one's sending to its arrival."""
        async with asyncio.timeout(ROUND_SECONDS):
            return await self._through(sent, interval_seconds)

    async def _through(self, sent: Sequence[Event], interval_seconds: float) -> list[float]:
        left: dict[bytes, float] = {}
        feeding = asyncio.create_task(self._feed(sent, interval_seconds, left))
        waited: dict[bytes, float] = {}
        expected = {event.key for event in sent}
        while len(waited) < len(expected):
            batches = await self._reader.getmany(timeout_ms=200)
            now = time.perf_counter()
            waited |= {
                record.key: now - left[record.key]
                for records in batches.values()
                for record in records
                if record.key in expected
            }
        await feeding
        return list(waited.values())

    async def _feed(self, sent: Sequence[Event], interval_seconds: float, left: dict[bytes, float]) -> None:
        acknowledged: list[asyncio.Future[Any]] = []
        for event in sent:
            left[event.key] = time.perf_counter()
            acknowledged.append(await self._producer.send(self._source, event.value, key=event.key))
            if interval_seconds:
                await asyncio.sleep(interval_seconds)
        await asyncio.gather(*acknowledged)


def events(count: int) -> list[Event]:
    """Rollouts of a usual size, each a group of its own, that `exact` judges."""
    return [_rollout(f"{uuid.uuid4().hex}") for _ in range(count)]


def _rollout(group: str) -> Event:
    randomness = random.Random(group)
    prompt = TokenSpan(token_ids=pack_token_ids([randomness.randrange(49152) for _ in range(PROMPT_TOKENS)]))
    answer = TokenSpan(
        token_ids=pack_token_ids([randomness.randrange(49152) for _ in range(ANSWER_TOKENS)]),
        logprobs=pack_logprobs([-randomness.random() for _ in range(ANSWER_TOKENS)]),
        trainable=True,
        policy_version=PolicyVersion(1, 0),
    )
    text = "Adding up gives\n" + "the next number, " * 10 + "\n4"
    rollout = Rollout(
        run_id="bench",
        purpose=Purpose.SCORE,
        rollout_id=rollout_id(group, 0),
        group_id=group,
        task=Task(prompt_id=group, domain="bench", grader=ExactGrader(answer="4")),
        spans=(prompt, answer),
        text=text,
        digest=rollout_digest((prompt, answer), text),
    )
    return Event(group.encode(), encode(rollout, ROLLOUTS))


async def run(quick: bool) -> dict[str, Any]:
    """The two chains in turn: bursts, then a trickle."""
    rollouts, rounds = (300, 2) if quick else (3000, 5)
    trickle, trickles, per_second = (40, 2, 20) if quick else (200, 3, 20)
    result = Measurement("grade_path", rounds)
    async with _chains() as (ours, bare, broker):
        with steps("grade path: bursts", 2 * rounds) as advance:
            times = await alternate(
                {"ours": lambda: ours.burst(events(rollouts)), "bare": lambda: bare.burst(events(rollouts))},
                rounds,
                advance,
            )
        waits: dict[str, list[float]] = {"ours": [], "bare": []}

        async def trickled(name: str, chain: Chain) -> float:
            waits[name] += await chain.latencies(events(trickle), 1 / per_second)
            return 0.0

        with steps("grade path: trickle", 2 * trickles) as advance:
            await alternate(
                {"ours": lambda: trickled("ours", ours), "bare": lambda: trickled("bare", bare)}, trickles, advance
            )
        memory = memory_bytes(broker.pids[0])
    rates = {name: [rollouts / seconds for seconds in taken] for name, taken in times.items()}
    result.ratio("grade_path_over_bare_throughput", rates["ours"], rates["bare"])
    result.figures = {
        "grade_path_rollouts_per_second": round(statistics.median(rates["ours"]), 1),
        "bare_chain_events_per_second": round(statistics.median(rates["bare"]), 1),
        "added_latency_p50_ms": _ms(percentile(waits["ours"], 0.5) - percentile(waits["bare"], 0.5)),
        "added_latency_p99_ms": _ms(percentile(waits["ours"], 0.99) - percentile(waits["bare"], 0.99)),
        "grade_path_latency_p50_ms": _ms(percentile(waits["ours"], 0.5)),
        "grade_path_latency_p99_ms": _ms(percentile(waits["ours"], 0.99)),
        "bare_chain_latency_p50_ms": _ms(percentile(waits["bare"], 0.5)),
        "bare_chain_latency_p99_ms": _ms(percentile(waits["bare"], 0.99)),
        "cpu_ms_per_rollout": _cpu_ms(ours, rollouts * rounds),
        "cpu_ms_per_bare_event": _cpu_ms(bare, rollouts * rounds),
        "rollout_bytes": len(events(1)[0].value),
        "broker_memory_mib": round(memory / (1 << 20)),
    }
    return result.as_json()


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _cpu_ms(chain: Chain, count: int) -> dict[str, float]:
    return {name: round(seconds * 1000 / count, 3) for name, seconds in chain.cpu.items()}


@asynccontextmanager
async def _chains() -> AsyncGenerator[tuple[Chain, Chain, EmbeddedKafka]]:
    """Both chains, warm, on one broker."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-bench-")))
        broker = EmbeddedKafka(directory / "kafka")
        settings = KafkaSettings(bootstrap=await broker.start())
        stack.push_async_callback(broker.stop)
        await apply_topics(settings, partitions=PARTITIONS)
        await _declare_bare(settings)
        producer = make_producer(settings, "bench")
        await stack.enter_async_context(producer)
        ours_pids: dict[str, int] = {}
        for role in ("dispatch", "reward"):
            command = headwater_command("worker", role, "--run-directory", str(directory), "--name", role)
            ours_pids[role] = await _start(stack, role, command, directory, settings.to_environment())
        bare_pids: dict[str, int] = {}
        for number in range(len(BARE_TOPICS) - 1):
            name = f"hop_{number + 1}"
            places = BARE_TOPICS[number : number + 2]
            command = [sys.executable, "-m", "tests.bench.bare_hop", settings.bootstrap, *places]
            bare_pids[name] = await _start(stack, name, command, directory, {})
        broker_pid = {"broker": broker.pids[0]}
        ours = Chain(
            producer,
            await _reader(stack, settings),
            settings.name(ROLLOUTS.name),
            settings.name(REWARDS.name),
            ours_pids | broker_pid,
        )
        bare = Chain(producer, await _reader(stack, settings), BARE_TOPICS[0], BARE_TOPICS[-1], bare_pids | broker_pid)
        for chain in (ours, bare):
            await chain.start()
        yield ours, bare, broker


async def _start(
    stack: AsyncExitStack, name: str, command: Sequence[str], directory: Path, environment: dict[str, str]
) -> int:
    process = await start_process(RoleSpec(name, command, directory / f"{name}.log", environment))
    stack.push_async_callback(stop_process, process, 15.0)
    return process.pid


async def _reader(stack: AsyncExitStack, settings: KafkaSettings) -> AIOKafkaConsumer:
    consumer = AIOKafkaConsumer(bootstrap_servers=settings.bootstrap, enable_auto_commit=False)
    return await stack.enter_async_context(consumer)


async def _declare_bare(settings: KafkaSettings) -> None:
    admin = make_admin(settings)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in BARE_TOPICS])
    finally:
        await admin.close()
