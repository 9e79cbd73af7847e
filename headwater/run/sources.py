"""The role `source`: publishes the prompts of the run's own task sources, each with its place, then `SourceEnd`.

What the newest checkpoint says has ended is not published again; on a log that has some already (this role was
restarted) the scheduler drops the repeated ones by their identity.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import msgspec

from headwater.client import Client
from headwater.config.run_config import RunConfig
from headwater.measure.held_out import training_prompts
from learner.book.position import NumberSet
from schemas import Prompt, Purpose, SourceEnd, SourcePosition
from tasks.config import Data, DomainData, FileData
from tasks.errors import UnreadableData
from tasks.files.checked import CheckedPrompts
from wire.kafka.settings import KafkaSettings

log = logging.getLogger(__name__)


async def run_sources(
    config: RunConfig, ended: dict[str, NumberSet], settings: KafkaSettings, stop: asyncio.Event
) -> None:
    """Publish all sources of the run, one beside the other. `ended`: the indices of each that have ended.

    Raises TaskError for data that cannot be used.
    """
    async with Client(settings=settings) as client, asyncio.TaskGroup() as group:
        for data in config.data:
            group.create_task(_publish(client, config, data, ended.get(data.name, NumberSet()), stop))


async def _publish(client: Client, config: RunConfig, data: Data, ended: NumberSet, stop: asyncio.Event) -> None:
    if isinstance(data, DomainData):
        left = (index for index in range(data.count) if index not in ended)
        prompts: Iterator[Prompt] = training_prompts(data, config, left)
        published = await client.publish(_until(stop, prompts))
        count = data.count
    else:
        with CheckedPrompts(data.path, _defaults(config, data.domain), data.columns) as checked:
            await asyncio.to_thread(checked.read)
            _must_be_usable(checked, data)
            count = checked.accepted * data.epochs
            prompts = _placed(data.name, checked.prompts(data.epochs, data.shuffle_seed), ended)
            published = await client.publish(_until(stop, prompts))
    if not stop.is_set():
        await client.publish([SourceEnd(source=data.name, domain=data.domain, count=count)])
        log.info("%s: %d of %d prompts published (the others had ended), then its end", data.name, published, count)


def check_data(config: RunConfig) -> None:
    """Read every file of the run's data. Raises UnreadableData for the first that the run could not use."""
    for data in config.data:
        if isinstance(data, FileData):
            with CheckedPrompts(data.path, _defaults(config, data.domain), data.columns) as checked:
                checked.read()
                _must_be_usable(checked, data)


def _must_be_usable(checked: CheckedPrompts, data: FileData) -> None:
    """Raise UnreadableData, which names the first row that a run must not leave out, or what no run is trained on."""
    checked.must_be_whole()
    if checked.domains - {data.domain}:
        other = min(checked.domains - {data.domain})
        raise UnreadableData(f"{data.path} has prompts of domain {other!r}; this source's domain is {data.domain!r}")
    if Purpose.EVALUATE in checked.purposes:
        raise UnreadableData(
            f"{data.path} has prompts of purpose `evaluate`, on which nothing is trained: leave `purpose` out, or "
            "measure them with `headwater eval --dataset`"
        )


def _defaults(config: RunConfig, domain: str) -> dict[str, Any]:
    """What the run says of prompts that do not say it themselves."""
    sampling = config.sampling
    return {
        "domain": domain,
        "group_size": sampling.group_size,
        "deadline_seconds": sampling.deadline_seconds,
        "sampling": {
            "temperature": sampling.temperature,
            "max_new_tokens": sampling.max_new_tokens,
            "stop": sampling.stop,
        },
    }


def _placed(source: str, prompts: Iterator[Prompt], ended: NumberSet) -> Iterator[Prompt]:
    """Prompts with their place in the source, without those that have ended. Without an id it is named by its place."""
    for index, prompt in enumerate(prompts):
        if index not in ended:
            place = SourcePosition(source=source, index=index)
            yield msgspec.structs.replace(prompt, id=prompt.id or f"{source}-{index}", source=place)


def _until(stop: asyncio.Event, prompts: Iterator[Prompt]) -> Iterator[Prompt]:
    for prompt in prompts:
        if stop.is_set():
            return
        yield prompt
