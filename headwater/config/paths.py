"""Paths in a run's settings, so that the run can be resumed from any folder, and joined from any machine."""

from pathlib import Path

from headwater.config.run_config import RunConfig, StorageConfig
from headwater.errors import ConfigError
from tasks.config import FileData


def anchored(config: RunConfig) -> RunConfig:
    """The settings with every local path absolute. A model that is no folder here is a name, and stays one.

    Raises ConfigError for a chat template that is neither text nor a file.
    """
    answers, storage = config.engine.recorded_answers, config.storage.url
    engine = {
        "recorded_answers": answers and Path(_absolute(answers)),
        "chat_template": _text(config.engine.chat_template),
    }
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
            "engine": config.engine.model_copy(update=engine),
        }
    )


def _absolute(path: str | Path) -> str:
    return str(Path(path).expanduser().absolute())


def _text(template: str | None) -> str | None:
    """A template as it is, or what its file holds: other machines do not have that file."""
    if template is None or "{" in template:
        return template
    try:
        return Path(template).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"engine.chat_template is no Jinja text, and as a file it cannot be read: {error}") from error
