"""What can be wrong with an event's bytes.

SchemaError
├── MalformedEvent      not JSON, a wrong type, a missing or unknown field: say which event and field
├── UnknownVersion      a schema_version this release does not read
└── EventTooLarge       the encoded event is above its topic's limit
"""


class SchemaError(ValueError):
    """An event that cannot be read or written; the message names event, field and fix."""


class MalformedEvent(SchemaError):
    """The bytes are not the event their topic asks for."""


class UnknownVersion(SchemaError):
    """The event's `schema_version` is newer (or older) than this release reads."""

    def __init__(self, event: str, version: int, readable: int) -> None:
        super().__init__(
            f"{event}: schema_version {version} is not read by this release (it reads {readable}); "
            "upgrade the reader or write the older version"
        )
        self.version = version


class EventTooLarge(SchemaError):
    """The encoded event is larger than its topic takes."""
