"""The topic table of the contract: what is on a topic, who writes and who reads it, and every limit.

Names here are logical; on the broker each carries the configured prefix. The topics marked
`grouped` have the same partition count, so that a group always meets in one partition number.
Whatever needs to know who reads or writes a topic asks this table.
"""

from typing import Literal, NamedTuple

from schemas.base import Event
from schemas.control import CancelRequest, Pause, Resume
from schemas.executions import Execution
from schemas.generations import Cancel, Drained, Generation
from schemas.progress import LogIdentity, Progress
from schemas.prompts import Prompt, SourceEnd
from schemas.rewards import Reward
from schemas.roles import RoleName
from schemas.rollouts import Rollout
from schemas.runs import RunStarted
from schemas.trajectories import GroupDropped, Trajectory
from schemas.verdicts import Verdict
from schemas.weights import WeightUpdate

DAY_SECONDS = 24 * 3600
MIB = 1 << 20

DEFAULT_PREFIX = "headwater."
LOG_ID_KEY = "log-id"


class TopicSpec[E: Event](NamedTuple):
    """One topic of the events E."""

    name: str
    events: tuple[type[E], ...]
    retention_seconds: int | None
    """None: never expires by time."""
    writers: tuple[RoleName, ...] = ()
    readers: tuple[RoleName, ...] = ()
    """Those that commit how far they are, as consumer groups. The first of all who read it, these and then the
    followers, puts aside what cannot be read; the others pass over it."""
    followers: tuple[RoleName, ...] = ()
    """Those that keep their place themselves, or read all of it when they start."""
    cleanup: Literal["delete", "compact"] = "delete"
    grouped: bool = False
    partitions: int = 1
    """Where not `grouped` (those take the run's `partitions`)."""
    max_event_bytes: int = MIB
    user_written: bool = False
    """People write it: an unknown major version is a dead letter, not a stop."""


PROMPTS_PREFIX = "prompts."
EXECUTIONS_PREFIX = "executions."

CONTROL = TopicSpec(
    "control", (CancelRequest, Pause, Resume), 7 * DAY_SECONDS, readers=(RoleName.SCHEDULER,), user_written=True
)
GENERATIONS = TopicSpec(
    "generations",
    (Generation, Cancel, Drained),
    7 * DAY_SECONDS,
    writers=(RoleName.SCHEDULER,),
    readers=(RoleName.ROLLOUT, RoleName.COLLECT),
    followers=(RoleName.SCHEDULER,),
    grouped=True,
    max_event_bytes=5 * MIB,
)
ROLLOUTS = TopicSpec(
    "rollouts",
    (Rollout,),
    7 * DAY_SECONDS,
    writers=(RoleName.ROLLOUT,),
    readers=(RoleName.DISPATCH, RoleName.COLLECT),
    followers=(RoleName.ROLLOUT,),
    grouped=True,
    max_event_bytes=16 * MIB,
    user_written=True,
)
EXECUTIONS = TopicSpec(
    "executions",
    (Execution,),
    DAY_SECONDS,
    writers=(RoleName.DISPATCH,),
    readers=(RoleName.SANDBOX,),
    grouped=True,
    max_event_bytes=16 * MIB,
)
VERDICTS = TopicSpec(
    "verdicts",
    (Verdict,),
    7 * DAY_SECONDS,
    writers=(RoleName.SANDBOX, RoleName.DISPATCH),
    readers=(RoleName.REWARD,),
    grouped=True,
    user_written=True,
)
REWARDS = TopicSpec(
    "rewards", (Reward,), 30 * DAY_SECONDS, writers=(RoleName.REWARD,), readers=(RoleName.COLLECT,), grouped=True
)
TRAJECTORIES = TopicSpec(
    "trajectories",
    (Trajectory, GroupDropped, Drained),
    7 * DAY_SECONDS,
    writers=(RoleName.COLLECT,),
    followers=(RoleName.LEARNER,),
    grouped=True,
    max_event_bytes=16 * MIB,
)
EVALUATIONS = TopicSpec(
    "evaluations",
    (Trajectory, GroupDropped),
    30 * DAY_SECONDS,
    writers=(RoleName.COLLECT,),
    followers=(RoleName.SCHEDULER, RoleName.RECORDER),
    max_event_bytes=16 * MIB,
)
WEIGHTS = TopicSpec(
    "weights",
    (WeightUpdate,),
    None,
    writers=(RoleName.LEARNER,),
    followers=(RoleName.ROLLOUT, RoleName.SCHEDULER, RoleName.LEARNER),
    cleanup="compact",
)
RUNS = TopicSpec(
    "runs",
    (RunStarted,),
    None,
    followers=(RoleName.SCHEDULER, RoleName.SOURCE, RoleName.ROLLOUT, RoleName.LEARNER, RoleName.RECORDER),
    cleanup="compact",
)
PROGRESS = TopicSpec(
    "progress",
    (Progress, LogIdentity),
    None,
    writers=(RoleName.LEARNER,),
    followers=(RoleName.SCHEDULER, RoleName.LEARNER),
    cleanup="compact",
)
DEAD_LETTERS: TopicSpec[Event] = TopicSpec("dead-letters", (), 90 * DAY_SECONDS, max_event_bytes=16 * MIB)

PATH: tuple[TopicSpec[Event], ...] = (
    GENERATIONS,
    ROLLOUTS,
    EXECUTIONS,
    VERDICTS,
    REWARDS,
    TRAJECTORIES,
    EVALUATIONS,
)
"""The path of a rollout, from admission on."""
FIXED_TOPICS: tuple[TopicSpec[Event], ...] = (CONTROL, *PATH, WEIGHTS, RUNS, PROGRESS, DEAD_LETTERS)


def prompts_topic(domain: str) -> TopicSpec[Prompt | SourceEnd]:
    """One prompt stream a domain."""
    return TopicSpec(
        PROMPTS_PREFIX + domain,
        (Prompt, SourceEnd),
        None,
        writers=(RoleName.SOURCE,),
        readers=(RoleName.SCHEDULER,),
        max_event_bytes=4 * MIB,
        user_written=True,
    )


def executions_topic(grader: str) -> TopicSpec[Execution]:
    """The jobs of one external grader."""
    return EXECUTIONS._replace(name=EXECUTIONS_PREFIX + grader)


def topic_spec(name: str) -> TopicSpec[Event]:
    """The limits of a logical topic name. Raises KeyError for a name the contract does not hold."""
    if name.startswith(PROMPTS_PREFIX):
        return prompts_topic(name.removeprefix(PROMPTS_PREFIX))
    if name.startswith(EXECUTIONS_PREFIX):
        return executions_topic(name.removeprefix(EXECUTIONS_PREFIX))
    for spec in FIXED_TOPICS:
        if spec.name == name:
            return spec
    raise KeyError(f"{name} is no topic of the contract")


def read_by(role: RoleName) -> tuple[str, ...]:
    """The fixed topics that the role reads as a consumer group."""
    return tuple(spec.name for spec in FIXED_TOPICS if role in spec.readers)


def first_reader(topic: str) -> RoleName:
    """The role that puts aside what is wrong on `topic`; every other reader passes over it and counts.

    Raises KeyError for a topic that no role reads.
    """
    spec = topic_spec(topic)
    for role in (*spec.readers, *spec.followers):
        return role
    raise KeyError(f"no role reads {topic}")
