"""A broker that is not there yet is one clear error, whatever aiokafka calls it."""

import pytest
from aiokafka.errors import KafkaConnectionError, StaleMetadata

from wire.errors import BrokerUnreachable
from wire.kafka.clients import broker_errors
from wire.kafka.settings import KafkaSettings


# StaleMetadata: of one that has just started, and knows of no broker, itself neither (seen on a busy machine)
@pytest.mark.parametrize("error", [KafkaConnectionError("refused"), StaleMetadata("Broker id None not in metadata")])
def test_a_broker_that_is_not_ready_does_not_answer(error: Exception) -> None:
    with (
        pytest.raises(BrokerUnreachable, match="no Kafka broker answers at host:9092"),
        broker_errors(KafkaSettings(bootstrap="host:9092")),
    ):
        raise error
