"""The topic table of the contract: who may be on a topic, how it is keyed, and every limit.

Names here are logical; on the broker each carries the configured prefix. The topics marked
`grouped` have the same partition count, so that a group always meets in one partition number.
"""

from typing import Literal, NamedTuple

from schemas.base import Event
from schemas.control import CancelRequest, Pause, Resume
from schemas.executions import Execution
from schemas.generations import Cancel, Drained, Generation
from schemas.progress import LogIdentity, Progress
from schemas.prompts import Prompt, SourceEnd
from schemas.rewards import Reward
from schemas.rollouts import Rollout
from schemas.trajectories import GroupDropped, Trajectory
from schemas.verdicts import Verdict
from schemas.weights import WeightUpdate

DAY_SECONDS = 24 * 3600
MIB = 1 << 20

DEFAULT_PREFIX = "headwater."
LOG_ID_KEY = "log-id"


class TopicSpec(NamedTuple):
    """One topic's limits."""

    name: str
    events: tuple[type[Event], ...]
    retention_seconds: int | None
    """None: never expires by time."""
    cleanup: Literal["delete", "compact"] = "delete"
    grouped: bool = False
    partitions: int = 1
    """Where not `grouped` (those take the run's `partitions`)."""
    max_event_bytes: int = MIB
    user_written: bool = False
    """People write it: an unknown major version is a dead letter, not a stop."""


PROMPTS_PREFIX = "prompts."
EXECUTIONS_PREFIX = "executions."

CONTROL = TopicSpec("control", (CancelRequest, Pause, Resume), 7 * DAY_SECONDS, user_written=True)
GENERATIONS = TopicSpec(
    "generations", (Generation, Cancel, Drained), 7 * DAY_SECONDS, grouped=True, max_event_bytes=5 * MIB
)
ROLLOUTS = TopicSpec("rollouts", (Rollout,), 7 * DAY_SECONDS, grouped=True, max_event_bytes=16 * MIB, user_written=True)
EXECUTIONS = TopicSpec("executions", (Execution,), DAY_SECONDS, grouped=True, max_event_bytes=16 * MIB)
VERDICTS = TopicSpec("verdicts", (Verdict,), 7 * DAY_SECONDS, grouped=True, user_written=True)
REWARDS = TopicSpec("rewards", (Reward,), 30 * DAY_SECONDS, grouped=True)
TRAJECTORIES = TopicSpec(
    "trajectories", (Trajectory, GroupDropped, Drained), 7 * DAY_SECONDS, grouped=True, max_event_bytes=16 * MIB
)
EVALUATIONS = TopicSpec("evaluations", (Trajectory, GroupDropped), 30 * DAY_SECONDS, max_event_bytes=16 * MIB)
WEIGHTS = TopicSpec("weights", (WeightUpdate,), None, cleanup="compact")
PROGRESS = TopicSpec("progress", (Progress, LogIdentity), None, cleanup="compact")
DEAD_LETTERS = TopicSpec("dead-letters", (), 90 * DAY_SECONDS, max_event_bytes=16 * MIB)

FIXED_TOPICS: tuple[TopicSpec, ...] = (
    CONTROL,
    GENERATIONS,
    ROLLOUTS,
    EXECUTIONS,
    VERDICTS,
    REWARDS,
    TRAJECTORIES,
    EVALUATIONS,
    WEIGHTS,
    PROGRESS,
    DEAD_LETTERS,
)


def prompts_topic(domain: str) -> TopicSpec:
    """One prompt stream a domain."""
    return TopicSpec(PROMPTS_PREFIX + domain, (Prompt, SourceEnd), None, user_written=True, max_event_bytes=4 * MIB)


def executions_topic(grader: str) -> TopicSpec:
    """The jobs of one external grader."""
    return EXECUTIONS._replace(name=EXECUTIONS_PREFIX + grader)


def topic_spec(name: str) -> TopicSpec:
    """The limits of a logical topic name. Raises KeyError for a name the contract does not hold."""
    if name.startswith(PROMPTS_PREFIX):
        return prompts_topic(name.removeprefix(PROMPTS_PREFIX))
    if name.startswith(EXECUTIONS_PREFIX):
        return executions_topic(name.removeprefix(EXECUTIONS_PREFIX))
    for spec in FIXED_TOPICS:
        if spec.name == name:
            return spec
    raise KeyError(f"{name} is no topic of the contract")
