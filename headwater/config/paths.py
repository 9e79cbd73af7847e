"""Paths in a run's settings, so that the run can be resumed from any folder."""

from pathlib import Path

from headwater.config.run_config import RunConfig, StorageConfig
from tasks.config import FileData


def anchored(config: RunConfig) -> RunConfig:
    """The settings with every local path absolute. A model that is no folder here is a name, and stays one."""
    answers, storage = config.engine.recorded_answers, config.storage.url
    return config.model_copy(
        update={
            "model": _absolute(config.model) if Path(config.model).expanduser().is_dir() else config.model,
            "data": tuple(
                source.model_copy(update={"path": _absolute(source.path)})
                if isinstance(source, FileData) and "://" not in source.path
                else source
                for source in config.data
            ),
            "storage": StorageConfig(url=_absolute(storage) if storage and "://" not in storage else storage),
            "engine": config.engine.model_copy(update={"recorded_answers": answers and Path(_absolute(answers))}),
        }
    )


def _absolute(path: str | Path) -> str:
    return str(Path(path).expanduser().absolute())
