"""What can go wrong at the front door. The message is for the person who typed the command.

HeadwaterError
├── ConfigError           a run TOML, environment variable or override that cannot be used
├── InputError            a file of prompts or answers that cannot be read
├── RunDirectoryError     a run directory that is taken, missing or of another kind
├── ModelError            a model that is not there or is none
├── Interrupted           a person, or the system, asked for the end
├── RoleFailed            a role died more often than the supervisor restarts it
├── BrokerEnded           the embedded broker cannot be kept running
├── NothingTrained        a run is over, and no group of it was trained on
├── NothingMeasured       an evaluation is over, and no answer of it has a reward
├── NotAnswered           the stream did not answer in time
└── StrangerImported      a module of the same name hides one of our packages
"""

from typing import ClassVar


class HeadwaterError(Exception):
    """Shown as one line, with exit status 1 and without a traceback: it names the trouble and the fix."""

    restart_helps: ClassVar[bool] = False
    """False: the same would happen again, so that a supervisor starts the role no more."""


class ConfigError(HeadwaterError):
    """A setting that is unknown, missing or of the wrong kind; the message names the key."""


class InputError(HeadwaterError):
    """A file that cannot be read as what was asked for; the message names file and line."""


class RunDirectoryError(HeadwaterError):
    """A run directory that cannot be used: locked, absent, or it exists already."""


class Interrupted(HeadwaterError):
    """Ended in order by Ctrl-C or SIGTERM; the message says how to go on. Exit status 130, as shells have it."""


class RoleFailed(HeadwaterError):
    """A role kept dying; the message names its log and its last lines."""


class ModelError(HeadwaterError):
    """The model to start from cannot be had."""


class BrokerEnded(HeadwaterError):
    """The log of this `up` is gone or full; the message has the command that resumes the run."""


class NothingTrained(HeadwaterError):
    """Every group was dropped; the message says how they ended, and what to change."""


class NothingMeasured(HeadwaterError):
    """Every answer was left out; the message says why."""


class NotAnswered(HeadwaterError):
    """No answer came within the time allowed."""


class StrangerImported(HeadwaterError, ImportError):
    """An import of one of our packages finds somebody else's; the message says where."""
