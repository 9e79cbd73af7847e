"""From a TOML file, the environment and `--set` to a RunConfig, with errors that name the key and the nearest one.

Later wins: file, then HEADWATER_ variables, then overrides. A nested key is written `training.learning_rate` in an
override and `HEADWATER_TRAINING__LEARNING_RATE` in the environment.
"""

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from headwater.config.run_config import RunConfig
from headwater.errors import ConfigError
from tasks.config import SOURCE_TAGS

ENVIRONMENT_PREFIX = "HEADWATER_"


def load_config(path: Path, environment: Mapping[str, str], overrides: Sequence[str] = ()) -> RunConfig:
    """The validated settings. Raises ConfigError."""
    try:
        settings: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"no configuration {path}: write one with `headwater init {path}`") from error
    except IsADirectoryError as error:
        raise ConfigError(f"{path} is a directory; name the TOML file in it") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return build_config(settings, environment, overrides, origin=str(path))


def build_config(
    settings: Mapping[str, Any],
    environment: Mapping[str, str] = {},
    overrides: Sequence[str] = (),
    *,
    origin: str = "configuration",
) -> RunConfig:
    """Merge and validate. Raises ConfigError."""
    merged = dict(settings)
    for key, text in _from_environment(environment).items():
        merged = _with(merged, key.split("."), _value(text), origin=f"{ENVIRONMENT_PREFIX}… variable for {key}")
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"--set {override!r}: write it as key=value, for example --set training.max_updates=10")
        merged = _with(merged, key.strip().split("."), _value(text.strip()), origin=f"--set {override}")
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{origin}: {_explain(detail)}" for detail in error.errors())) from error


def write_config(config: RunConfig, path: Path) -> None:
    """The settings as they were merged: what every role of the run reads."""
    values: list[str] = []
    tables: list[str] = []
    lists: list[str] = []
    for key, value in config.model_dump(mode="json", exclude_none=True).items():
        if isinstance(value, dict):
            tables += ["", f"[{key}]", *_toml_lines(value)]
        elif key == "data":
            lists += [line for source in value for line in ("", "[[data]]", *_toml_lines(source))]
        else:
            values += _toml_lines({key: value})
    path.write_text("\n".join([*values, *lists, *tables]) + "\n", encoding="utf-8")


def _toml_lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in table.items()]


def _toml(value: Any) -> str:
    """A value in one line; JSON's numbers, texts and booleans are TOML's."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Dotted key → text. Names without `__` belong to others too (bootstrap, security): only known ones count."""
    found: dict[str, str] = {}
    for name, text in sorted(environment.items()):
        if not name.startswith(ENVIRONMENT_PREFIX):
            continue
        key = name.removeprefix(ENVIRONMENT_PREFIX).lower()
        if "__" in key or (key in RunConfig.model_fields and not _is_section(key)):
            found[key.replace("__", ".")] = text
    return found


def _is_section(key: str) -> bool:
    annotation = RunConfig.model_fields[key].annotation
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _with(settings: Mapping[str, Any], path: list[str], value: Any, *, origin: str) -> dict[str, Any]:
    key, *rest = path
    if not rest:
        return {**settings, key: value}
    inner = settings.get(key, {})
    if not isinstance(inner, Mapping):
        raise ConfigError(f"{origin}: `{key}` is no table of settings")
    return {**settings, key: _with(inner, rest, value, origin=origin)}


def _value(text: str) -> Any:
    """TOML where it is TOML (numbers, booleans, lists), else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _explain(detail: Any) -> str:
    location = [part for part in detail["loc"] if part not in SOURCE_TAGS]
    key = ".".join(str(part) for part in location)
    if detail["type"] == "extra_forbidden":
        known = _keys_at(location[:-1])
        close = difflib.get_close_matches(str(location[-1]), known, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"known: {', '.join(sorted(known))}"
        return f"unknown setting `{key}`; {hint}"
    if detail["type"] == "missing":
        return f"`{key}` is required and has no default"
    message = str(detail["msg"]).removeprefix("Value error, ")
    return f"`{key}`: {message}" if key else message


def _keys_at(location: Sequence[str | int]) -> list[str]:
    models: list[type[BaseModel]] = [RunConfig]
    for part in location:
        if isinstance(part, int):
            continue
        models = [inner for model in models for inner in _models_in(model.model_fields[part].annotation)]
    return sorted({name for model in models for name in model.model_fields})


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]
