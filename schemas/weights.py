"""A published policy version: a manifest that suffices to load it (design §5)."""

import msgspec

from schemas.base import Event


class WeightFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a snapshot."""

    name: str
    bytes: int
    sha256: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A Hugging Face model directory in object storage."""

    uri: str
    version: int
    files: tuple[WeightFile, ...]
    digest: str
    """sha256 over the sorted (name, sha256) lines."""


class WeightUpdate(Event, frozen=True, kw_only=True, tag="weight_update"):
    """Published after every byte is durable. Readers take the highest incarnation, then version."""

    model: str
    incarnation: int
    version: int
    snapshot: Snapshot
    published_at: float
