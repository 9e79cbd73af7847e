"""`[[data]]`: where a run's own prompts come from, one table a source."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from tasks.errors import UnknownDomain
from tasks.files.mapping import ColumnMap
from tasks.registry import find_domain

FILE = "file"
SourceName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$")]
DomainName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Count = Annotated[int, Field(ge=1)]


class _Source(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DomainData(_Source):
    """Problems of a domain, from a seed."""

    kind: str
    """The domain's name: `functions`, `humaneval`, or one that another package brings."""
    name: SourceName
    """The task source's name: what checkpoints count its prompts under. Absent: the kind."""
    domain: DomainName
    """The prompt stream. Absent: the kind."""
    count: Count
    """Prompts to publish; the run may end before all are used. Absent: all that the domain has."""
    seed: int | None = None
    """Absent: the run's seed."""

    @model_validator(mode="before")
    @classmethod
    def _as_the_domain_says(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not isinstance(given.get("kind"), str):
            return given
        try:
            domain = find_domain(given["kind"])
        except UnknownDomain as error:
            raise ValueError(f"{error}; prompts from a file: kind = {FILE!r}") from error
        size = {} if domain.size is None else {"count": domain.size}
        return {"name": domain.name, "domain": domain.name, **size, **given}

    @model_validator(mode="after")
    def _has_so_many(self) -> "DomainData":
        size = find_domain(self.kind).size
        if size is not None and self.count > size:
            raise ValueError(f"count is {self.count}, but the domain {self.kind!r} has {size} problems")
        return self


class FileData(_Source):
    """Prompts from files, local or at any fsspec URL."""

    kind: Literal["file"]
    name: SourceName
    path: str
    """A file, folder or glob, as `files/paths.py` says."""
    domain: DomainName
    """All its prompts are of this domain, which they need not say; others are refused."""
    map: dict[str, Any] = {}
    """A prompt's fields from columns, as `files/mapping.py` says; empty: the rows are prompts."""
    epochs: Count = 1
    shuffle_seed: int | None = None

    @property
    def columns(self) -> ColumnMap | None:
        return ColumnMap(self.map, self.domain) if self.map else None

    @model_validator(mode="after")
    def _map_makes_sense(self) -> "FileData":
        _ = self.columns
        return self


def _kind(given: Any) -> str:
    kind = given.get("kind") if isinstance(given, Mapping) else getattr(given, "kind", None)
    return "of a file" if kind == FILE else "of a domain"


SOURCE_TAGS = ("of a file", "of a domain")
"""What pydantic puts into the place of an error, beside the keys that a person wrote."""
Data = Annotated[
    Annotated[FileData, Tag(SOURCE_TAGS[0])] | Annotated[DomainData, Tag(SOURCE_TAGS[1])], Discriminator(_kind)
]
