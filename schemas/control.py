"""What people write to `control`."""

from schemas.base import Event


class CancelRequest(Event, frozen=True, kw_only=True, tag="cancel_request", forbid_unknown_fields=True):
    """End a group, every open group of a prompt, or (with neither) of the run."""

    group_id: str | None = None
    prompt_id: str | None = None


class Pause(Event, frozen=True, kw_only=True, tag="pause", forbid_unknown_fields=True):
    """Admit nothing more: of one domain, or of the run."""

    domain: str | None = None


class Resume(Event, frozen=True, kw_only=True, tag="resume", forbid_unknown_fields=True):
    """Undo a `Pause` of the same width."""

    domain: str | None = None
