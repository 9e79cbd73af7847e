"""How a role gets to know its run: `up` puts it on the log (`runs`); whoever has the broker and the name reads it."""

import asyncio
import time
from pathlib import Path
from typing import Any

from headwater.config.load import build_config, load_config
from headwater.config.run_config import CREDENTIALS, RunConfig
from headwater.errors import ConfigError, HeadwaterError
from headwater.files.positions import storage_uri
from headwater.files.run_directory import RunDirectory
from headwater.run.models import cache_directory, model_directory
from schemas import RunStarted, Snapshot
from schemas.topics import RUNS
from wire.kafka.events import readable
from wire.kafka.publisher import Publisher
from wire.kafka.reading import read_topics
from wire.kafka.records import Outgoing
from wire.kafka.settings import KafkaSettings
from wire.storage import Storage
from wire.weights.snapshots import describe, fetch

_KEPT_MODELS = 2


async def publish_run(
    config: RunConfig, directory: RunDirectory, settings: KafkaSettings, model: Path | None = None
) -> RunStarted:
    """Tell every role of the run, here and elsewhere. `model` goes into a storage that is not the run directory.

    Raises StorageFailed.
    """
    run_id = directory.run_id()
    storage = storage_uri(config, directory)
    run = RunStarted(
        run_id=run_id,
        name=config.name,
        config=public_settings(config),
        partitions=config.broker.partitions,
        storage=storage,
        model=await asyncio.to_thread(_stored_model, Storage(storage), model) if model and config.storage.url else None,
        started_at=time.time(),
    )
    async with Publisher(settings, "up") as publisher:
        await publisher.send(Outgoing(RUNS.name, run_id, run))
    return run


async def find_run(settings: KafkaSettings, name: str) -> RunStarted:
    """The run of that name or id; of several the one started last. Raises HeadwaterError when there is none."""
    known: dict[str, RunStarted] = {}
    async for record in read_topics(settings, [RUNS.name]):
        run = readable(record, RUNS)
        if run is not None:
            known[run.run_id] = run
    found = [run for run in known.values() if name in (run.name, run.run_id)]
    if found:
        return max(found, key=lambda run: run.started_at)
    names = ", ".join(sorted({run.name for run in known.values()})) or "none"
    raise HeadwaterError(
        f"there is no run {name!r} on {settings.bootstrap} with the prefix {settings.prefix!r} (known: {names}): "
        "`headwater up` puts it there when it starts"
    )


def config_of(run: RunStarted) -> RunConfig:
    """Its settings. Raises ConfigError for those of a newer release."""
    try:
        return build_config(run.config, origin=f"the run {run.name}")
    except ConfigError as error:
        raise ConfigError(f"{error}\nThe run was started by another release: install the same one here") from error


def config_here(run: RunStarted, directory: RunDirectory) -> RunConfig:
    """Its settings; on the machine that started it the URLs of its data are whole. Raises ConfigError."""
    return load_config(directory.config, {}) if directory.config.is_file() else config_of(run)


async def model_of(run: RunStarted) -> Path:
    """Where training starts, as a directory on this machine. Raises ModelError, SnapshotMismatch."""
    if run.model is None:
        return await model_directory(config_of(run).model)
    return await fetch(run.model, cache_directory() / "joined", keep=_KEPT_MODELS)


def public_settings(config: RunConfig) -> dict[str, Any]:
    """As they go onto the log: no credentials."""
    values = config.model_dump(mode="json", exclude_none=True)
    for source in values["data"]:
        path: str = CREDENTIALS.sub("", source.get("path", ""))
        if path:  # of a web page the query may be a signature; elsewhere `?` is a glob's
            source["path"] = path.partition("?")[0] if path.startswith(("http://", "https://")) else path
    return values


def check_reachable(run: RunStarted, needing: str) -> None:
    """Raise ConfigError where the run's files are in a directory that this machine does not have.

    StorageFailed where they are in a store that cannot be asked from here.
    """
    storage = Storage(run.storage)
    directory = storage.local
    if directory is None:
        storage.names()
    elif not directory.is_dir():
        raise ConfigError(
            f"the {needing} of {run.name} needs the run's weights or checkpoints, and they are in {directory} of the "
            "machine that started the run: set storage.url to what all its machines reach, for example "
            '"s3://bucket/runs", and start it again with `up --resume`'
        )


def _stored_model(storage: Storage, model: Path) -> Snapshot:
    """Its manifest, when all its bytes are in the storage; those that are there already are not copied again."""
    here = describe(model, 0)
    stored = storage.below("model").below(here.digest[:16])
    if not stored.has(here.files[-1].name):
        stored.put(model, last=here.files[-1].name)
    return Snapshot(uri=stored.uri, version=0, files=here.files, digest=here.digest)
