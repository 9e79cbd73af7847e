"""The exported JSON Schema files: up to date, and compatible with what was released."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from schemas.json_schema import incompatibilities, schemas_by_event

ROOT = Path(__file__).parents[3]
CURRENT = ROOT / "schemas/json"
RELEASED = ROOT / "tests/cases/schemas/1"
"""Version 1 of the contract as first released. Never edited: a change that breaks it raises SCHEMA_VERSION."""


@pytest.mark.parametrize("name", sorted(schemas_by_event()))
def test_the_exported_file_is_up_to_date(name: str) -> None:
    exported = json.loads((CURRENT / f"{name}.schema.json").read_text())
    assert exported == schemas_by_event()[name], "run `python -m schemas.json_schema`"


@pytest.mark.parametrize("path", sorted(RELEASED.glob("*.json")), ids=lambda path: path.name.split(".")[0])
def test_the_contract_is_compatible_with_its_release(path: Path) -> None:
    name = path.name.split(".")[0]
    assert incompatibilities(json.loads(path.read_text()), schemas_by_event()[name]) == []


def test_there_is_a_release_to_compare_with() -> None:
    assert len(list(RELEASED.glob("*.json"))) >= 17


def change(what: str, schema: dict[str, Any]) -> None:
    prompt = schema["$defs"]["Prompt"]
    match what:
        case "removed field":
            del prompt["properties"]["group_size"]
        case "new required field":
            prompt["properties"]["licence"] = {"type": "string"}
            prompt["required"].append("licence")
        case "other type":
            prompt["properties"]["epoch"] = {"type": "string"}
        case "removed grader":
            grader = prompt["properties"]["grader"]["anyOf"]
            del grader[0]
        case _:
            raise AssertionError(what)


@pytest.mark.parametrize("what", ["removed field", "new required field", "other type", "removed grader"])
def test_a_breaking_change_is_found(what: str) -> None:
    old = schemas_by_event()["prompt"]
    new = copy.deepcopy(old)
    change(what, new)
    assert len(incompatibilities(old, new)) == 1


def test_a_new_optional_field_is_compatible() -> None:
    old = schemas_by_event()["prompt"]
    new = copy.deepcopy(old)
    new["$defs"]["Prompt"]["properties"]["licence"] = {"type": "string", "default": ""}
    assert incompatibilities(old, new) == []
