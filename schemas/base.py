"""What every event carries, and the few types that many of them share."""

from enum import StrEnum
from typing import NamedTuple

import msgspec

SCHEMA_VERSION = 1
"""The major version of the contract. New optional fields do not raise it."""


class Purpose(StrEnum):
    """Why a rollout exists: it decides where its reward ends (design §1)."""

    TRAIN = "train"
    EVALUATE = "evaluate"
    SCORE = "score"


class PolicyVersion(NamedTuple):
    """Which weights: a learner's life and its update count. Ordered; a higher incarnation wins."""

    incarnation: int
    version: int

    def __str__(self) -> str:
        return f"{self.incarnation}.{self.version}"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The envelope. `run_id` is empty for what users publish before a run exists."""

    schema_version: int = SCHEMA_VERSION
    run_id: str = ""
    purpose: Purpose = Purpose.TRAIN
    trace_id: str = ""


class SourcePosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where a task source's prompt stands in its source: `index` counts from 0 without gaps."""

    source: str
    index: int


class UserStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of what people write: an unknown field is an error (the codec names the nearest one)."""
