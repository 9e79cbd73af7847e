"""What the learner says on `weights`, given to the follower of this worker's engine."""

from schemas.topics import WEIGHTS
from streams.rollout.follower import PolicyFollower
from wire.kafka.events import readable
from wire.kafka.log_reader import LogReader
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.metrics import Metrics


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
                # every worker reads it: a dead letter each would say the same thing many times
                update = readable(record, WEIGHTS)
                if update is None:
                    metrics.skipped.labels("rollout", "malformed").inc()
                else:
                    follower.offer(update)
