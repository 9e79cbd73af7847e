"""How full the brokers' disks are, asked of them (Kafka's DescribeLogDirs, version 4: Apache Kafka 3.3 and newer)."""

# aiokafka declares a structure's numbers as properties and sets them as values, as here
# pyright: reportAssignmentType=false, reportIncompatibleMethodOverride=false

from typing import Any, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from wire.kafka.clients import administrator
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import BULKY

MIN_FREE_BYTES = 1 << 30
"""By default nothing is admitted with less left than this."""
LOOK_SECONDS = 10.0
"""How often those who must know of a shortage ask."""
GIB = 1 << 30
_TAGS = ("tags", TaggedFields)


class Disk(NamedTuple):
    """Of the fullest broker."""

    used_bytes: int
    """What the topics of our prefix take there."""
    free_bytes: int
    """What is left for everybody on the file system that holds the log."""

    def shortage(self, min_free_bytes: int) -> str:
        """What to tell and do when there is too little left; empty: there is enough."""
        if self.free_bytes >= min_free_bytes:
            return ""
        return (
            f"the broker's disk has {self.free_bytes / GIB:.2f} GiB left, less than {min_free_bytes / GIB:.2f} GiB "
            "(broker.min_free_bytes): nothing is admitted until there is more. What is under way goes on"
        )


class _Answer(Response):
    API_KEY = 35
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        (
            "results",
            CompactArray(
                ("error_code", Int16),
                ("log_dir", CompactString("utf-8")),
                (
                    "topics",
                    CompactArray(
                        ("name", CompactString("utf-8")),
                        (
                            "partitions",
                            CompactArray(
                                ("partition", Int32),
                                ("size", Int64),
                                ("lag", Int64),
                                ("is_future", Boolean),
                                _TAGS,
                            ),
                        ),
                        _TAGS,
                    ),
                ),
                ("total_bytes", Int64),
                ("usable_bytes", Int64),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _Question(RequestStruct):
    API_KEY = 35
    API_VERSION = 4
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("topics", CompactArray(("topic", CompactString("utf-8")), ("partitions", Array(Int32)), _TAGS)),
        _TAGS,
    )


class _DescribeLogDirs(Request[_Question]):
    API_KEY = 35

    def build(self, request_struct_class: type[_Question]) -> _Question:
        return request_struct_class(None, {})  # of all topics


async def read_disk(settings: KafkaSettings) -> Disk | None:
    """None where a broker does not tell: too old, or its administrator does not allow it. Raises BrokerUnreachable."""
    try:
        async with administrator(settings) as admin:
            answers = await _ask(admin)
    except IncompatibleBrokerVersion:
        return None
    if not all(answer["results"] for answer in answers):
        return None
    return min((_disk(settings, answer) for answer in answers), key=lambda disk: disk.free_bytes)


async def read_shortage(settings: KafkaSettings, min_free_bytes: int) -> str:
    """Why nothing may be admitted; empty: there is room, or brokers do not tell. Raises BrokerUnreachable."""
    disk = await read_disk(settings)
    return disk.shortage(min_free_bytes) if disk else ""


async def read_bound(settings: KafkaSettings) -> int | None:
    """The most that the bulky topics of our prefix may take, a segment each beyond; None where one has no bound.

    Raises BrokerUnreachable.
    """
    async with administrator(settings) as admin:
        partitions = {
            topic["topic"]: len(topic["partitions"])
            for topic in await admin.describe_topics()
            if topic["topic"].startswith(tuple(map(settings.name, BULKY)))
        }
        if not partitions:
            return None
        answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in partitions])
    kept = {
        resource["resource_name"]: int(entry["config_value"])
        for answer in answers
        for resource in answer.to_object()["resources"]
        for entry in resource["config_entries"]
        if entry["config_names"] == "retention.bytes"
    }
    if len(kept) < len(partitions) or min(kept.values()) < 0:
        return None
    return sum(kept[name] * count for name, count in partitions.items())


async def _ask(admin: AIOKafkaAdminClient) -> list[dict[str, Any]]:
    client = admin._client  # pyright: ignore[reportPrivateUsage] - it has no public way to ask every node
    nodes = [node.nodeId for node in client.cluster.brokers()]
    return [(await admin._send_request_to_node(node, _DescribeLogDirs())).to_object() for node in nodes]  # pyright: ignore[reportPrivateUsage]


def _disk(settings: KafkaSettings, answer: dict[str, Any]) -> Disk:
    directories = answer["results"]
    used = sum(
        partition["size"]
        for directory in directories
        for topic in directory["topics"]
        if topic["name"].startswith(settings.prefix)
        for partition in topic["partitions"]
    )
    return Disk(used, min(directory["usable_bytes"] for directory in directories))
