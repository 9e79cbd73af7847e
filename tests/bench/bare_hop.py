"""One hop of the bare chain: the same bytes from one topic to the next, with aiokafka alone.

    python -m tests.bench.bare_hop BOOTSTRAP SOURCE TARGET

What one would write first and well: a batch is read, sent without waiting for each record, and awaited whole;
aiokafka commits by its timer. No decoding, no guarantee against loss.
"""

import asyncio
import signal
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def hop(bootstrap: str, source: str, target: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=f"bare-{source}",
        auto_offset_reset="earliest",
    )
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer, consumer:
        while not stop.is_set():
            batches = await consumer.getmany(timeout_ms=500)
            sent = [
                await producer.send(target, record.value, key=record.key)
                for records in batches.values()
                for record in records
            ]
            await asyncio.gather(*sent)


if __name__ == "__main__":
    asyncio.run(hop(*sys.argv[1:4]))
