"""Which failures of a role a restart cannot mend. By name, so that no role's libraries need be imported to ask."""

from headwater.errors import HeadwaterError

_LASTING = frozenset(
    {
        "Superseded",  # another learner has taken over
        "CompilerMissing",
        "UnsupportedModel",
        "CheckpointError",
        "LedgerDamaged",
        "TooManySkippedSteps",
        "StoredOffsetOutOfRange",
        "UpgradeFirst",
        "TopicRefused",
        "Unconfined",  # the sandbox refuses to judge on this host
        "SandboxUnavailable",
    }
)


def refuses_restart(error: BaseException) -> bool:
    """Whether the same would happen again."""
    if isinstance(error, BaseExceptionGroup):
        return any(refuses_restart(inner) for inner in error.exceptions)
    return isinstance(error, HeadwaterError) or any(kind.__name__ in _LASTING for kind in type(error).__mro__)
