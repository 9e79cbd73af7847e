"""The contract as JSON Schema files, for readers in other languages: `python -m schemas.json_schema DIR`."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from schemas.base import Event
from schemas.codec import event_name
from schemas.topics import FIXED_TOPICS, prompts_topic

Schema = dict[str, Any]


def event_types() -> list[type[Event]]:
    """Every event of the contract, once."""
    topics = (prompts_topic("domain"), *FIXED_TOPICS)
    return list(dict.fromkeys(event for topic in topics for event in topic.events))


def schemas_by_event() -> dict[str, Schema]:
    """Event name → its JSON Schema."""
    return {event_name(event): json.loads(json.dumps(msgspec.json.schema(event))) for event in event_types()}


def incompatibilities(old: Schema, new: Schema) -> list[str]:
    """What in `new` would break a reader or writer of `old`: one line each, empty when compatible.

    Compatible changes are a new optional field, a new event field default, a wider type and a new
    member of a tagged union. A field that goes, a new required field, a field that changes or loses
    a type, and a narrower bound are not.
    """
    found: list[str] = []
    for name, old_part in old.get("$defs", {}).items():
        new_part = new.get("$defs", {}).get(name)
        if new_part is None:
            found.append(f"{name} is gone")
            continue
        found += _part_changes(name, old_part, new_part)
    return found


def _part_changes(name: str, old: Schema, new: Schema) -> list[str]:
    found: list[str] = []
    old_properties: Schema = old.get("properties", {})
    new_properties: Schema = new.get("properties", {})
    for field, old_field in old_properties.items():
        if field not in new_properties:
            found.append(f"{name}.{field} is gone")
            continue
        lost = _shapes(old_field) - _shapes(new_properties[field])
        if lost:
            found.append(f"{name}.{field} no longer takes {', '.join(sorted(lost))}")
    for field in set(new.get("required", ())) - set(old.get("required", ())):
        found.append(f"{name}.{field} is newly required")
    lost_values = set(map(str, old.get("enum", ()))) - set(map(str, new.get("enum", ())))
    if lost_values:
        found.append(f"{name} no longer has {', '.join(sorted(lost_values))}")
    return found


def _shapes(field: Schema) -> set[str]:
    """The alternatives a field takes, as comparable text; titles, descriptions and defaults do not count."""
    if "anyOf" in field:
        return set().union(*(_shapes(part) for part in field["anyOf"]))
    kept = {
        key: value for key, value in field.items() if key not in ("title", "description", "default", "discriminator")
    }
    return {json.dumps(kept, sort_keys=True)}


def main() -> None:
    """Write one file an event into the directory named on the command line."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "json")
    directory.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas_by_event().items():
        (directory / f"{name}.schema.json").write_text(json.dumps(schema, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
