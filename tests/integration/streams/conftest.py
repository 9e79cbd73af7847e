"""The broker's topics, with the prompt topic that these tests write to."""

import pytest_asyncio

from wire.settings import KafkaSettings
from wire.topics import declare_domain


@pytest_asyncio.fixture
async def kafka(kafka: KafkaSettings) -> KafkaSettings:
    await declare_domain(kafka, "a")
    return kafka
