"""The front door: command line, client library, run configuration, supervisor, live screen and reports.

`import headwater` imports nothing else of ours; what is named here is loaded when it is first asked for, and neither
torch nor Faust with it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.client import Answer, Client, Scored
    from headwater.errors import HeadwaterError, InputError, NotAnswered, StrangerImported
    from schemas import (
        Checker,
        CheckGrader,
        Context,
        Event,
        EventTooLarge,
        ExactGrader,
        ExternalGrader,
        FunctionGrader,
        FunctionTest,
        Grader,
        GroupDropped,
        Limits,
        MalformedEvent,
        Member,
        Message,
        NamedTest,
        ProjectGrader,
        Prompt,
        Purpose,
        PythonGrader,
        Reward,
        Sampling,
        SchemaError,
        SourceEnd,
        StdioGrader,
        StdioTest,
        Trajectory,
        UnittestGrader,
        UnknownVersion,
        Unscorable,
    )
    from schemas.topics import TopicSpec, topic_spec
    from wire.errors import BrokerUnreachable, TopicRefused, WireError
    from wire.kafka.records import Place
    from wire.kafka.settings import KafkaSettings

__all__ = [
    "Answer",
    "BrokerUnreachable",
    "CheckGrader",
    "Checker",
    "Client",
    "Context",
    "Event",
    "EventTooLarge",
    "ExactGrader",
    "ExternalGrader",
    "FunctionGrader",
    "FunctionTest",
    "Grader",
    "GroupDropped",
    "HeadwaterError",
    "InputError",
    "KafkaSettings",
    "Limits",
    "MalformedEvent",
    "Member",
    "Message",
    "NamedTest",
    "NotAnswered",
    "Place",
    "ProjectGrader",
    "Prompt",
    "Purpose",
    "PythonGrader",
    "Reward",
    "Sampling",
    "SchemaError",
    "Scored",
    "SourceEnd",
    "StdioGrader",
    "StdioTest",
    "StrangerImported",
    "TopicRefused",
    "TopicSpec",
    "Trajectory",
    "UnittestGrader",
    "UnknownVersion",
    "Unscorable",
    "WireError",
    "topic_spec",
]

_WHERE = ("headwater.errors", "headwater.client", "schemas", "schemas.topics", "wire.errors", "wire.kafka.settings")


def __getattr__(name: str) -> Any:
    if name in __all__:
        from headwater.strangers import refuse_strangers

        refuse_strangers()
        for module in map(import_module, _WHERE):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
