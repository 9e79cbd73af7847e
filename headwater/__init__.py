"""The front door: command line, client library, run configuration, supervisor, live screen and reports.

Nothing here imports torch or Faust until a role needs them, and `import headwater` itself imports nothing of ours.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.client import Client

__all__ = ["Client"]


def __getattr__(name: str) -> Any:
    if name == "Client":
        from headwater.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
