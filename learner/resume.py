"""Where a life of the learner begins: a new incarnation, the newest position, and the ledger rolled back to it."""

import asyncio
import logging
from pathlib import Path

from learner.book.checkpoints import load_position, newest_checkpoint
from learner.book.incarnation import take_incarnation
from learner.book.ledger import roll_back
from learner.book.position import Position
from learner.config import LearnerConfig
from learner.durable import remove_leftovers
from schemas import Progress, WeightUpdate
from schemas.topics import PROGRESS, TRAJECTORIES, WEIGHTS
from wire.kafka.events import readable
from wire.kafka.log_reader import LogReader
from wire.kafka.records import Place
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import read_log_id

logger = logging.getLogger(__name__)


async def resume(config: LearnerConfig, settings: KafkaSettings) -> tuple[Position, Path | None]:
    """The position of a new incarnation, and the checkpoint it stands on; None: training starts.

    Raises CheckpointError, LedgerDamaged, StorageFailed, and what the stream raises.
    """
    log_id = await read_log_id(settings)
    config.run_directory.mkdir(parents=True, exist_ok=True)
    config.weights.mkdir(exist_ok=True)
    above = await _newest_on_stream(settings)
    stored = config.stored
    if stored is None:
        incarnation = take_incarnation(config.checkpoints, above)
    else:
        incarnation = await asyncio.to_thread(stored.take_incarnation, above)
    remove_leftovers(config.checkpoints)
    remove_leftovers(config.weights)
    if stored is None:
        checkpoint = newest_checkpoint(config.checkpoints)
    else:
        checkpoint = await asyncio.to_thread(stored.fetch_checkpoint)
    position = Position() if checkpoint is None else load_position(checkpoint)
    moved = roll_back(config.run_directory, position.ledger_lines)
    position.begin(incarnation, log_id)
    logger.info(
        "incarnation %d begins at version %d (%s); %d ledger lines rolled back",
        incarnation,
        position.version,
        checkpoint or "no checkpoint",
        moved,
    )
    return position, checkpoint


async def next_offsets(position: Position, partitions: int, settings: KafkaSettings) -> dict[Place, int]:
    """Where to read each partition on; one that the position does not name, from its beginning."""
    topic = TRAJECTORIES.name
    async with LogReader(settings) as reader:
        return {
            (topic, partition): (
                position.offsets[partition]
                if partition in position.offsets
                else await reader.begin_offset(topic, partition)
            )
            for partition in range(partitions)
        }


async def _newest_on_stream(settings: KafkaSettings) -> int:
    """The highest incarnation that readers of this prefix know: they would ignore a lower one."""
    newest = 0
    async with LogReader(settings) as reader:
        for topic in (WEIGHTS, PROGRESS):
            for record in await reader.read_all(topic.name):
                event = readable(record, topic)
                if isinstance(event, WeightUpdate | Progress):
                    newest = max(newest, event.incarnation)
    return newest
