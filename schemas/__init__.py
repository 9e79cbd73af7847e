"""The contract: every event of the stream, its topic, its ids and its codec. Imports nothing of ours."""

from schemas.base import SCHEMA_VERSION, Event, PolicyVersion, Purpose, SourcePosition
from schemas.control import CancelRequest, Pause, Resume
from schemas.errors import EventTooLarge, MalformedEvent, SchemaError, UnknownVersion
from schemas.executions import Context, Execution
from schemas.generations import Cancel, Drained, Generation
from schemas.graders import (
    Checker,
    CheckGrader,
    CompareValues,
    ExactGrader,
    ExternalGrader,
    ExtractPattern,
    ExtractRule,
    FunctionGrader,
    FunctionTest,
    Grader,
    Limits,
    NamedTest,
    ProjectGrader,
    PythonGrader,
    StdioGrader,
    StdioTest,
    UnittestGrader,
)
from schemas.outcomes import DrainReason, DropReason, Outcome, Unscorable, UnscorableReason
from schemas.progress import LogIdentity, Progress, SourceProgress
from schemas.prompts import Message, Prompt, Sampling, SourceEnd, Task
from schemas.rewards import Reward
from schemas.roles import RoleName
from schemas.rollouts import FinishReason, Rollout, TokenSpan
from schemas.runs import RunStarted
from schemas.trajectories import GroupDropped, Member, Trajectory
from schemas.verdicts import TestVerdict, Verdict, VerdictKind
from schemas.weights import Snapshot, WeightFile, WeightUpdate

__all__ = [
    "SCHEMA_VERSION",
    "Cancel",
    "CancelRequest",
    "CheckGrader",
    "Checker",
    "CompareValues",
    "Context",
    "DrainReason",
    "Drained",
    "DropReason",
    "Event",
    "EventTooLarge",
    "ExactGrader",
    "Execution",
    "ExternalGrader",
    "ExtractPattern",
    "ExtractRule",
    "FinishReason",
    "FunctionGrader",
    "FunctionTest",
    "Generation",
    "Grader",
    "GroupDropped",
    "Limits",
    "LogIdentity",
    "MalformedEvent",
    "Member",
    "Message",
    "NamedTest",
    "Outcome",
    "Pause",
    "PolicyVersion",
    "Progress",
    "ProjectGrader",
    "Prompt",
    "Purpose",
    "PythonGrader",
    "Resume",
    "Reward",
    "RoleName",
    "Rollout",
    "RunStarted",
    "Sampling",
    "SchemaError",
    "Snapshot",
    "SourceEnd",
    "SourcePosition",
    "SourceProgress",
    "StdioGrader",
    "StdioTest",
    "Task",
    "TestVerdict",
    "TokenSpan",
    "Trajectory",
    "UnittestGrader",
    "UnknownVersion",
    "Unscorable",
    "UnscorableReason",
    "Verdict",
    "VerdictKind",
    "WeightFile",
    "WeightUpdate",
]
