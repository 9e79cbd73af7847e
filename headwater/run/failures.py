"""How a role's failure is told: in its own words where it has some, and whether a restart could mend it.

An error whose class says `restart_helps` is made for a person, and knows: no role's libraries need be imported to ask.
A disk that is full is told as itself, whatever was written when it was.
"""

import errno
import os

_FULL = {errno.ENOSPC: "no space is left", errno.EDQUOT: "the quota is used up"}


def refuses_restart(error: BaseException) -> bool:
    """Whether the same would happen again."""
    return any(_full_disk(inner) or not getattr(inner, "restart_helps", True) for inner in _leaves(error))


def in_words(error: BaseException) -> str | None:
    """The message of what went wrong; None when it was not made for a person."""
    words = [_full_disk(inner) or (str(inner) if hasattr(inner, "restart_helps") else None) for inner in _leaves(error)]
    told = [message for message in words if message is not None]
    return "; ".join(dict.fromkeys(told)) if len(told) == len(words) else None


def _full_disk(error: BaseException) -> str | None:
    """The message where this error, or what it came from, is a disk that is full."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _FULL:
            where = f" on the disk of {cause.filename}" if cause.filename else ""
            return f"{_FULL[cause.errno]}{where}: free some, then go on with `headwater up --resume`"
        if os.strerror(errno.ENOSPC) in str(cause):  # of a library that keeps the words only
            return f"{cause}: free some, then go on with `headwater up --resume`"
        cause = cause.__cause__ or cause.__context__
    return None


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
