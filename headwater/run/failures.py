"""How a role's failure is told: in its own words where it has some, and whether a restart could mend it.

Asked by name, so that no role's libraries need be imported to ask.
"""

_SPOKEN = frozenset({"WireError", "LearnerError", "SandboxError", "HeadwaterError"})
"""Bases of errors whose message is for a person; anything else keeps its traceback."""
_LASTING = frozenset(
    {
        "HeadwaterError",
        "SandboxUnavailable",
        "Superseded",
        "CheckpointError",
        "CompilerMissing",
        "UnsupportedModel",
        "LedgerDamaged",
        "TooManySkippedSteps",
        "StoredOffsetOutOfRange",
        "UpgradeFirst",
        "LogUnidentified",
        "TopicRefused",
    }
)


def refuses_restart(error: BaseException) -> bool:
    """Whether the same would happen again."""
    return any(_kinds(inner) & _LASTING for inner in _leaves(error))


def in_words(error: BaseException) -> str | None:
    """The message of what went wrong; None when it was not made for a person."""
    leaves = _leaves(error)
    if all(_kinds(inner) & _SPOKEN for inner in leaves):
        return "; ".join(dict.fromkeys(str(inner) for inner in leaves))
    return None


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _kinds(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
