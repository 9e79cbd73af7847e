"""How an event gets onto the log: sent, and answered for by the broker, before anything is acknowledged."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerFenced

from schemas.codec import encode
from schemas.topics import DEAD_LETTERS, topic_spec
from wire.errors import Fenced
from wire.kafka.clients import LARGEST_EVENT_BYTES, broker_errors, close, connect, make_producer
from wire.kafka.dead_letters import DeadLetterKind, dead_letter_headers, dead_letter_key
from wire.kafka.records import WRITER_HEADER, Outgoing, Record, header_list
from wire.kafka.settings import KafkaSettings


class RecordMetadata(NamedTuple):
    """Where the broker put a record."""

    partition: int
    offset: int


class _Encoded(NamedTuple):
    topic: str
    key: bytes
    value: bytes
    headers: dict[str, bytes]
    partition: int | None


class Publisher:
    """A producer for one role. Use as `async with`.

    With a transactional id every `send` and every `send_all` is one transaction; a second publisher with
    the same id fences this one, which then raises Fenced.
    """

    def __init__(self, settings: KafkaSettings, writer: str, transactional_id: str | None = None) -> None:
        self.writer = writer
        self._settings = settings
        self._transactional_id = transactional_id
        self._running: AIOKafkaProducer | None = None
        self._transaction = asyncio.Lock()

    async def __aenter__(self) -> Self:
        producer = make_producer(self._settings, f"headwater-{self.writer}", transactional_id=self._transactional_id)
        await connect(producer, self._settings)
        self._running = producer
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        producer, self._running = self._running, None
        if producer is not None:
            await close(producer)

    async def send(self, out: Outgoing) -> RecordMetadata:
        """Publish one event; returns when every in-sync replica has it.

        Raises EventTooLarge, BrokerUnreachable, Fenced or another KafkaError: then it must be taken
        as not sent (it may be there all the same; deterministic ids make that harmless).
        """
        return (await self.send_all([out]))[0]

    async def send_all(self, outs: Sequence[Outgoing]) -> list[RecordMetadata]:
        """Publish several at once, in their order per key. Nothing is sent when one cannot be encoded."""
        return await self._send([self._encode(out) for out in outs])

    async def dead_letter(
        self,
        record: Record,
        reason: str,
        attempts: int = 1,
        *,
        kind: DeadLetterKind = DeadLetterKind.MALFORMED,
        first_seen: float | None = None,
    ) -> RecordMetadata:
        """Put the record's original bytes aside with the reason. `first_seen`: Unix seconds, None: now.

        Bytes beyond 16 MiB are cut, and the header `original-bytes` says how many there were.
        """
        seen = time.time() if first_seen is None else first_seen
        headers = dead_letter_headers(record, reason, kind, attempts, seen, self.writer)
        if len(record.value) > LARGEST_EVENT_BYTES:
            headers["original-bytes"] = str(len(record.value)).encode()
        letter = _Encoded(
            self._settings.name(DEAD_LETTERS.name),
            dead_letter_key(record).encode(),
            record.value[:LARGEST_EVENT_BYTES],
            headers,
            None,
        )
        return (await self._send([letter]))[0]

    def _encode(self, out: Outgoing) -> _Encoded:
        value = encode(out.event, topic_spec(out.topic))
        headers = {WRITER_HEADER: self.writer.encode()}
        return _Encoded(self._settings.name(out.topic), out.key.encode(), value, headers, out.partition)

    async def _send(self, letters: Sequence[_Encoded]) -> list[RecordMetadata]:
        if not letters:
            return []
        if self._running is None:
            raise RuntimeError("the publisher is not started: use `async with`")
        try:
            with broker_errors(self._settings):
                async with self._in_transaction(self._running):
                    answers = await asyncio.gather(*[await self._start(self._running, letter) for letter in letters])
        except ProducerFenced as error:
            raise Fenced(
                f"another {self.writer} has taken over ({self._transactional_id}): only one may run; this one stops"
            ) from error
        return [RecordMetadata(answer.partition, answer.offset) for answer in answers]

    async def _start(self, producer: AIOKafkaProducer, letter: _Encoded) -> Awaitable[Any]:
        """Queue it; the awaitable inside is the broker's answer."""
        return await producer.send(
            letter.topic,
            key=letter.key,
            value=letter.value,
            headers=header_list(letter.headers),
            partition=letter.partition,
        )

    @asynccontextmanager
    async def _in_transaction(self, producer: AIOKafkaProducer) -> AsyncGenerator[None]:
        if self._transactional_id is None:
            yield
            return
        async with self._transaction, producer.transaction():
            yield
