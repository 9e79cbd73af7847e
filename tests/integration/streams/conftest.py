"""The broker's topics, with the prompt topic that these tests write to."""

import pytest_asyncio

from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import declare_domain


@pytest_asyncio.fixture
async def kafka(kafka: KafkaSettings) -> KafkaSettings:
    await declare_domain(kafka, "a")
    return kafka
