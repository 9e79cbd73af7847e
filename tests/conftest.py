"""The broker of the integration tests: started once a session, or one that runs already (`--broker HOST:PORT`)."""

import uuid
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from wire.broker.embedded import EmbeddedKafka
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import apply_topics

PARTITIONS = 4
"""Of every topic on which a group meets."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", default="", help="HOST:PORT of a Kafka broker to test on; without it one is started")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    """`host:port` of the session's broker, started by the first test that needs it."""
    given = str(request.config.getoption("--broker"))
    if given:
        yield given
        return
    process = EmbeddedKafka(tmp_path_factory.mktemp("kafka"))
    try:
        yield await process.start()
    finally:
        await process.stop()


@pytest.fixture
def new_kafka(broker: str) -> KafkaSettings:
    """Settings with a prefix that no other test has; no topics yet."""
    return KafkaSettings(bootstrap=broker, prefix=f"test-{uuid.uuid4().hex[:8]}.")


@pytest_asyncio.fixture
async def kafka(new_kafka: KafkaSettings) -> KafkaSettings:
    """The same with every topic declared, `PARTITIONS` each where groups meet."""
    await apply_topics(new_kafka, partitions=PARTITIONS)
    return new_kafka
