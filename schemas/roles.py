"""The roles: who reads and writes the topics of the contract."""

from enum import StrEnum


class RoleName(StrEnum):
    """A role's name: as a command, as its consumer group, and as `writer` of what it publishes."""

    SCHEDULER = "scheduler"
    ROLLOUT = "rollout"
    DISPATCH = "dispatch"
    SANDBOX = "sandbox"
    REWARD = "reward"
    COLLECT = "collect"
    LEARNER = "learner"
    RECORDER = "recorder"
    SOURCE = "source"
