"""What can be wrong with tasks and their data. Each message names the fix; no restart mends any of it.

TaskError
├── UnknownDomain     no domain of that name is installed, or what is installed under it is none
├── DatasetMissing    a domain's problems come with a package that is not installed
└── UnreadableData    a file of prompts that cannot be used
"""

from typing import ClassVar


class TaskError(Exception):
    """Base of everything this package raises; the message is for the person who named the data."""

    restart_helps: ClassVar[bool] = False


class UnknownDomain(TaskError):
    """A name that no domain has; the message has the nearest one."""


class DatasetMissing(TaskError):
    """The package that carries a domain's problems is not installed."""


class UnreadableData(TaskError):
    """A file that cannot be read as prompts, or has none that can be used; the message names file and line."""
