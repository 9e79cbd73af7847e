"""The broker of the integration tests: `--broker bundled` (the default), `kafka` (Apache Kafka), or HOST:PORT."""

import importlib.util
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from wire.broker.bundled import BundledBroker
from wire.broker.process import BrokerProcess
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import apply_topics

PARTITIONS = 4
"""Of every topic on which a group meets."""


class Broker(NamedTuple):
    """The session's broker."""

    bootstrap: str
    transactions: bool
    """Apache Kafka's; the bundled one has none."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", default="bundled", help="bundled, kafka, or HOST:PORT of an Apache Kafka")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--broker") != "bundled":
        return
    for item in items:
        if item.get_closest_marker("kafka"):
            item.add_marker(pytest.mark.skip(reason="needs Apache Kafka: run with --broker kafka"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Broker]:
    """Started once, by the first test that needs it."""
    choice = str(request.config.getoption("--broker"))
    if choice not in ("bundled", "kafka"):
        yield Broker(choice, transactions=True)
        return
    directory = tmp_path_factory.mktemp("broker")
    process: BrokerProcess
    if choice == "bundled":
        process = BundledBroker(directory / "broker.log")
        bootstrap = await process.start()
    else:
        process = apache_kafka(directory)
        bootstrap = await process.start()  # type: ignore[attr-defined]
    try:
        yield Broker(bootstrap, transactions=choice == "kafka")
    finally:
        await process.stop()


@pytest.fixture
def new_kafka(broker: Broker) -> KafkaSettings:
    """Settings with a prefix that no other test has; no topics yet."""
    return KafkaSettings(
        bootstrap=broker.bootstrap, prefix=f"test-{uuid.uuid4().hex[:8]}.", transactions=broker.transactions
    )


@pytest_asyncio.fixture
async def kafka(new_kafka: KafkaSettings) -> KafkaSettings:
    """The same with every topic declared, `PARTITIONS` each where groups meet."""
    await apply_topics(new_kafka, partitions=PARTITIONS)
    return new_kafka


def apache_kafka(data: Path) -> Any:
    """A node from deploy/kafka, which is a script and no package."""
    script = Path(__file__).parents[1] / "deploy" / "kafka" / "kafka.py"
    spec = importlib.util.spec_from_file_location("deploy_kafka", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.KafkaBroker(data, data / "kafka.log")
