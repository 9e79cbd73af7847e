"""What can go wrong between an event and the broker.

WireError
├── StopWorker                the worker must end without acknowledging; a supervisor starts it again where that helps
│   ├── BrokerUnreachable     nobody answers at the bootstrap address, or it closed the door on us
│   ├── UpgradeFirst          one of our own roles wrote a version that this release does not read
│   ├── StoredOffsetOutOfRange  a stored offset lies outside the log it belongs to
│   ├── Fenced                another process took over our transactional id
│   └── NoProgress            events are waiting and nothing has moved for too long
├── Retryable                 raised by a hop's `handle`: try again, then give the event up
├── TopicRefused              the broker would not create a topic, or an existing one has other limits
├── LogUnidentified           the log has no identity yet: `headwater topics apply` comes first
├── SnapshotMismatch          bytes of a snapshot are not those its manifest names
├── StorageFailed            the run's storage cannot be reached, read or written
└── BrokerFailed              a broker that we started did not come up, or cannot be started here
"""

from typing import ClassVar


class WireError(Exception):
    """Base of everything this package raises; the message names the fix."""

    restart_helps: ClassVar[bool] = True
    """False: the same would happen again, so that a supervisor starts the role no more."""


class StopWorker(WireError):
    """The worker must end, acknowledging nothing of what it was handling."""


class BrokerUnreachable(StopWorker):
    """No broker answers."""


class UpgradeFirst(StopWorker):
    """An event of a newer release was written by one of our roles: this worker is too old to go on."""

    restart_helps = False


class StoredOffsetOutOfRange(StopWorker):
    """A stored offset outside [begin, end] of its partition: never silently reset."""

    restart_helps = False


class Fenced(StopWorker):
    """Another producer has the same transactional id."""


class NoProgress(StopWorker):
    """Events wait, and none has been finished for too long."""


class Retryable(WireError):
    """An infrastructure fault while handling an event: it says nothing about the event."""


class TopicRefused(WireError):
    """A topic could not be declared as the contract asks."""

    restart_helps = False


class LogUnidentified(WireError):
    """No LogIdentity on `progress`."""

    restart_helps = False


class SnapshotMismatch(WireError):
    """A snapshot's file is missing, or has another size or digest than the manifest says."""


class StorageFailed(WireError):
    """The storage of a run did not do what was asked of it."""


class BrokerFailed(WireError):
    """A broker that we start ourselves did not start."""
