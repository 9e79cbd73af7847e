"""How a role's failure is told: in its own words where it has some, and whether a restart could mend it.

An error whose class says `restart_helps` is made for a person, and knows: no role's libraries need be imported to ask.
"""


def refuses_restart(error: BaseException) -> bool:
    """Whether the same would happen again."""
    return any(not getattr(inner, "restart_helps", True) for inner in _leaves(error))


def in_words(error: BaseException) -> str | None:
    """The message of what went wrong; None when it was not made for a person."""
    leaves = _leaves(error)
    if all(hasattr(inner, "restart_helps") for inner in leaves):
        return "; ".join(dict.fromkeys(str(inner) for inner in leaves))
    return None


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
