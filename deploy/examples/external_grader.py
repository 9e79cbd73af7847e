"""An external grader: reads `executions.brevity`, rewards short answers. Any Kafka client of any language will do."""

import asyncio
import json
import os

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

NAME = "brevity"
PREFIX = os.environ.get("HEADWATER_PREFIX", "headwater.")
BROKER = os.environ.get("HEADWATER_KAFKA_BOOTSTRAP", "127.0.0.1:9092")
COPIED = ("run_id", "purpose", "trace_id", "execution_id", "context")


def judge(answer: str, task: dict[str, int]) -> dict[str, object]:
    share = min(1.0, task["longest"] / max(1, len(answer)))
    return {"kind": "accepted", "reward": share, "feedback": f"{len(answer)} characters"}


async def main() -> None:
    jobs = AIOKafkaConsumer(
        f"{PREFIX}executions.{NAME}",
        bootstrap_servers=BROKER,
        group_id=PREFIX + NAME,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with jobs, AIOKafkaProducer(bootstrap_servers=BROKER) as verdicts:
        async for record in jobs:
            job = json.loads(record.value or b"null")
            verdict = {name: job[name] for name in COPIED} | judge(job["program"], job["grader"]["task"])
            key = job["context"]["group_id"].encode()
            await verdicts.send_and_wait(f"{PREFIX}verdicts", json.dumps(verdict).encode(), key=key)
            await jobs.commit()


if __name__ == "__main__":
    asyncio.run(main())
