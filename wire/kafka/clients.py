"""Every Kafka client is made here: security, limits and guarantees in one place."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    NodeNotReadyError,
    RequestTimedOutError,
    StaleMetadata,
)
from aiokafka.partitioner import murmur2

from schemas.topics import MIB
from wire.errors import BrokerUnreachable
from wire.kafka.settings import KafkaSettings

__all__ = [
    "BrokerUnreachable",
    "broker_errors",
    "close",
    "connect",
    "make_admin",
    "make_consumer",
    "make_producer",
    "partition_of",
    "stop_consumer",
]

LARGEST_EVENT_BYTES = 16 * MIB
OVERHEAD_BYTES = 64 * 1024
"""Key, headers and batch framing on top of a value at its limit."""
REQUEST_TIMEOUT_SECONDS = 40
"""Above the session time-out, and above a leader election (12.6 s measured)."""
SESSION_TIMEOUT_SECONDS = 10
HEARTBEAT_SECONDS = 3
REBALANCE_TIMEOUT_SECONDS = 20
STOP_SECONDS = 5
MAX_POLL_SECONDS = 3600
"""A worker whose every slot is busy does not poll; our own liveness check (wire.hop.runner) is the shorter one."""


class Client(Protocol):
    """What aiokafka's clients share."""

    async def start(self) -> Any: ...


def make_producer(settings: KafkaSettings, client_id: str, *, transactional_id: str | None = None) -> AIOKafkaProducer:
    """A producer that answers only when every in-sync replica has the record."""
    return AIOKafkaProducer(
        **_common(settings, client_id),
        acks="all",
        enable_idempotence=True,
        transactional_id=transactional_id,
        compression_type="lz4",
        max_request_size=LARGEST_EVENT_BYTES + OVERHEAD_BYTES,
        max_batch_size=64 * 1024,
    )


def make_consumer(
    settings: KafkaSettings,
    client_id: str,
    *,
    consumer_group: str | None = None,
    instance_id: str | None = None,
    max_records: int | None = None,
    partition_fetch_bytes: int = LARGEST_EVENT_BYTES + OVERHEAD_BYTES,
) -> AIOKafkaConsumer:
    """A consumer that never commits by itself.

    With a (logical) `consumer_group` it starts at the beginning of what the group has never read, and
    partitions of the same number go to the same member. Without one the caller assigns and seeks:
    a position outside the log raises OffsetOutOfRangeError instead of being reset.
    """
    return AIOKafkaConsumer(
        **_common(settings, client_id),
        group_id=None if consumer_group is None else settings.name(consumer_group),
        group_instance_id=instance_id,
        partition_assignment_strategy=[RangePartitionAssignor],
        enable_auto_commit=False,
        auto_offset_reset="earliest" if consumer_group else "none",
        isolation_level="read_committed",
        max_partition_fetch_bytes=partition_fetch_bytes,
        max_poll_records=max_records,
        session_timeout_ms=SESSION_TIMEOUT_SECONDS * 1000,
        heartbeat_interval_ms=HEARTBEAT_SECONDS * 1000,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_SECONDS * 1000,
        max_poll_interval_ms=MAX_POLL_SECONDS * 1000,
    )


def make_admin(settings: KafkaSettings) -> AIOKafkaAdminClient:
    """A client that declares and describes topics."""
    return AIOKafkaAdminClient(**_common(settings, "headwater-admin"))


@asynccontextmanager
async def administrator(settings: KafkaSettings) -> AsyncGenerator[AIOKafkaAdminClient]:
    """One that is connected, for a few questions. Raises BrokerUnreachable."""
    admin = make_admin(settings)
    await connect(admin, settings)
    try:
        with broker_errors(settings):
            yield admin
    finally:
        await admin.close()


async def connect(client: Client, settings: KafkaSettings) -> None:
    """Start a client. Raises BrokerUnreachable in one clear line; the client is closed then."""
    try:
        with broker_errors(settings):
            await client.start()
        # its background tasks must have begun: aiokafka's stop() raises CancelledError for one that has not
        await asyncio.sleep(0)
    except BaseException:
        await close(client)
        raise


@contextmanager
def broker_errors(settings: KafkaSettings) -> Generator[None]:
    """Inside, a broker that does not answer is BrokerUnreachable in one clear line."""
    try:
        yield
    except (
        KafkaConnectionError,
        KafkaTimeoutError,
        KafkaUnavailableError,
        NodeNotReadyError,
        RequestTimedOutError,
        StaleMetadata,  # of a broker that has just started: it knows of none yet, itself neither
    ) as error:
        raise _unreachable(settings, error) from error


def _unreachable(settings: KafkaSettings, error: KafkaError) -> BrokerUnreachable:
    credentials = " and username and password" if settings.uses_sasl else ""
    return BrokerUnreachable(
        f"no Kafka broker answers at {settings.bootstrap} ({settings.protocol}): start one, or correct "
        f"--bootstrap{credentials} ({error})"
    )


async def stop_consumer(consumer: AIOKafkaConsumer) -> None:
    """Close it. aiokafka's own `stop` can wait for ever: its fetcher swallows the cancellation that it gets
    just after an assignment has changed. A second one, which the time-out sends, reaches it."""
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await consumer.stop()
    except TimeoutError:
        await consumer._client.close()  # pyright: ignore[reportPrivateUsage] - what the cut-off stop left open


def partition_of(key: str, partitions: int) -> int:
    """The partition number of a key: Kafka's murmur2, as the Java client, aiokafka and Faust compute it."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


async def close(client: Client) -> None:
    """Close a client, also when its broker is gone: aiokafka then lets out the cancellation of its own tasks."""
    try:
        if isinstance(client, AIOKafkaAdminClient):
            await client.close()
        elif isinstance(client, AIOKafkaConsumer | AIOKafkaProducer):
            await client.stop()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():  # it was meant for us
            raise


def _common(settings: KafkaSettings, client_id: str) -> dict[str, Any]:
    common: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap.split(","),
        "client_id": client_id,
        "request_timeout_ms": REQUEST_TIMEOUT_SECONDS * 1000,
        "security_protocol": settings.protocol,
        "ssl_context": settings.ssl_context(),
    }
    if settings.uses_sasl:
        common |= {
            "sasl_mechanism": settings.sasl_mechanism,
            "sasl_plain_username": settings.username,
            "sasl_plain_password": settings.password,
        }
    return common
