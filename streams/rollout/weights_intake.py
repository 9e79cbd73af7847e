"""What the learner says on `weights`, given to the follower of this worker's engine."""

import logging

from schemas import SchemaError, UnknownVersion, WeightUpdate
from schemas.codec import decode
from schemas.topics import WEIGHTS
from streams.rollout.follower import PolicyFollower
from wire.errors import UpgradeFirst
from wire.kafka.log_reader import LogReader
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.metrics import Metrics

log = logging.getLogger(__name__)


async def follow_weights(settings: KafkaSettings, follower: PolicyFollower, metrics: Metrics) -> None:
    """Offer every update, from the first that is there on, until cancelled.

    All of them: an evaluation group may ask for an older one. Raises UpgradeFirst, BrokerUnreachable.
    """
    async with LogReader(settings) as reader:
        begin = await reader.begin_offset(WEIGHTS.name, 0)
    async with Tail(settings, {(WEIGHTS.name, 0): begin}) as tail:
        while True:
            for record in await tail.poll():
                metrics.events_in.labels("rollout", WEIGHTS.name).inc()
                try:
                    event = decode(record.value, WEIGHTS)
                except UnknownVersion as error:
                    raise UpgradeFirst(f"upgrade me first: {WEIGHTS.name} at {record.offset}: {error}") from error
                except SchemaError as error:
                    # every worker reads it: a dead letter each would say the same thing many times
                    log.error("%s at %d is not read: %s", WEIGHTS.name, record.offset, error)
                    metrics.skipped.labels("rollout", "malformed").inc()
                    continue
                if isinstance(event, WeightUpdate):
                    follower.offer(event)
