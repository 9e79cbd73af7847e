"""Declaring the topics of the contract with every limit set, and the identity of the log they make up."""

import time
import uuid
from collections.abc import Iterable

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError, for_code

from schemas import Event, LogIdentity, MalformedEvent
from schemas.topics import (
    EXECUTIONS,
    FIXED_TOPICS,
    LOG_ID_KEY,
    PROGRESS,
    ROLLOUTS,
    TRAJECTORIES,
    VERDICTS,
    TopicSpec,
    executions_topic,
    prompts_topic,
)
from wire.errors import LogUnidentified, TopicRefused
from wire.kafka.clients import OVERHEAD_BYTES, administrator
from wire.kafka.events import event_of
from wire.kafka.log_reader import LogReader
from wire.kafka.publisher import Publisher
from wire.kafka.records import Outgoing
from wire.kafka.settings import KafkaSettings

BULKY = (ROLLOUTS.name, EXECUTIONS.name, VERDICTS.name, TRAJECTORIES.name)
"""Names (or beginnings) of the topics that make up almost all of a log: the broker's limit of bytes holds for these."""


async def apply_topics(
    settings: KafkaSettings,
    *,
    partitions: int,
    replication: int = 1,
    domains: Iterable[str] = (),
    graders: Iterable[str] = (),
) -> str:
    """Declare what is missing, check what is there, and return the log's id (written once, the first time).

    `partitions` is that of every topic on which a group meets. Raises TopicRefused when the broker
    refuses one, or when an existing one has other limits; BrokerUnreachable.
    """
    specs = [*FIXED_TOPICS, *map(prompts_topic, domains), *map(executions_topic, graders)]
    await _declare(settings, specs, partitions, replication)
    return await _identify(settings)


async def declare_domain(settings: KafkaSettings, domain: str, *, replication: int = 1) -> None:
    """Declare the prompt topic of one domain, if it is new."""
    await _declare(settings, [prompts_topic(domain)], partitions=1, replication=replication)


async def declare_grader(settings: KafkaSettings, grader: str, *, replication: int = 1) -> None:
    """Declare the topic of one external grader, if it is new. Raises LogUnidentified before `apply_topics`."""
    existing = await existing_topics(settings)
    if EXECUTIONS.name not in existing:
        raise LogUnidentified(
            f"the topics {settings.prefix}* are not on {settings.bootstrap}: run `headwater topics apply`"
        )
    await _declare(settings, [executions_topic(grader)], existing[EXECUTIONS.name], replication)


async def read_log_id(settings: KafkaSettings) -> str:
    """The id of the log behind these settings. Raises LogUnidentified before `apply_topics`."""
    if PROGRESS.name not in await existing_topics(settings):
        raise LogUnidentified(
            f"the topics {settings.prefix}* are not on {settings.bootstrap}: run `headwater topics apply`"
        )
    identities = await _identities(settings)
    if not identities:
        raise LogUnidentified("the log has no id: run `headwater topics apply`")
    return identities[0].log_id


async def existing_topics(settings: KafkaSettings) -> dict[str, int]:
    """Logical name → partitions, of every topic that carries our prefix."""
    async with administrator(settings) as admin:
        return await _existing(admin, settings)


def topic_limits(spec: TopicSpec[Event], replication: int) -> dict[str, str]:
    """The broker-side configuration of a topic."""
    retention = -1 if spec.retention_seconds is None else spec.retention_seconds * 1000
    return {
        "cleanup.policy": spec.cleanup,
        "retention.ms": str(retention),
        "max.message.bytes": str(spec.max_event_bytes + OVERHEAD_BYTES),
        "min.insync.replicas": "2" if replication >= 3 else "1",
        # what people wrote, and what is known of groups, goes by time alone
        **({} if spec.name.startswith(BULKY) else {"retention.bytes": "-1"}),
    }


async def _declare(settings: KafkaSettings, specs: list[TopicSpec[Event]], partitions: int, replication: int) -> None:
    wanted = {spec.name: partitions if spec.grouped else spec.partitions for spec in specs}
    async with administrator(settings) as admin:
        existing = await _existing(admin, settings)
        await _create(admin, settings, [spec for spec in specs if spec.name not in existing], wanted, replication)
        found = [spec for spec in specs if spec.name in existing]
        await _verify(admin, settings, found, wanted, existing)


async def _create(
    admin: AIOKafkaAdminClient,
    settings: KafkaSettings,
    specs: list[TopicSpec[Event]],
    partitions: dict[str, int],
    replication: int,
) -> None:
    if not specs:
        return
    answer = await admin.create_topics(
        [
            NewTopic(
                settings.name(spec.name),
                partitions[spec.name],
                replication,
                topic_configs=topic_limits(spec, replication),
            )
            for spec in specs
        ]
    )
    # a topic that failed raises nothing by itself
    for topic in answer.to_object()["topic_errors"]:
        error = for_code(topic["error_code"])
        # TopicAlreadyExists: another `apply` was a moment earlier
        if topic["error_code"] and error is not TopicAlreadyExistsError:
            raise TopicRefused(
                f"the broker refused topic {topic['topic']}: {topic.get('error_message') or error.__name__}"
            )


async def _verify(
    admin: AIOKafkaAdminClient,
    settings: KafkaSettings,
    specs: list[TopicSpec[Event]],
    partitions: dict[str, int],
    existing: dict[str, int],
) -> None:
    for spec in specs:
        if existing[spec.name] != partitions[spec.name]:
            raise TopicRefused(
                f"topic {settings.name(spec.name)} has {existing[spec.name]} partitions, not "
                f"{partitions[spec.name]}: give the number it has, or another prefix"
            )
    if not specs:
        return
    resources = [ConfigResource(ConfigResourceType.TOPIC, settings.name(spec.name)) for spec in specs]
    limits = {settings.name(spec.name): topic_limits(spec, replication=1) for spec in specs}
    for answer in await admin.describe_configs(resources):
        for resource in answer.to_object()["resources"]:
            name = resource["resource_name"]
            values = {entry["config_names"]: entry["config_value"] for entry in resource["config_entries"]}
            for key, value in limits[name].items():
                # how many replicas must answer, and how much is kept, is the operator's choice on an existing topic
                if key not in ("min.insync.replicas", "retention.bytes") and values.get(key, value) != value:
                    raise TopicRefused(
                        f"topic {name} has {key}={values[key]}, but the contract says {value}: "
                        "alter the topic, or use another prefix"
                    )


async def _existing(admin: AIOKafkaAdminClient, settings: KafkaSettings) -> dict[str, int]:
    # listed first, never asked for by name: asking makes some brokers create the topic
    return {
        settings.logical(topic["topic"]): len(topic["partitions"])
        for topic in await admin.describe_topics()
        if topic["topic"].startswith(settings.prefix)
    }


async def _identify(settings: KafkaSettings) -> str:
    """Write the identity if there is none. The first on the log is the one that counts.

    Of two `apply` at the same moment the later writes the winner's again, so that compaction, which
    keeps the last, keeps the same.
    """
    identities = await _identities(settings)
    if identities:
        return identities[0].log_id
    ours = LogIdentity(log_id=uuid.uuid4().hex, created_at=time.time())
    async with Publisher(settings, "topics-apply") as publisher:
        await publisher.send(Outgoing(PROGRESS.name, LOG_ID_KEY, ours))
        first = (await _identities(settings))[0]
        if first.log_id != ours.log_id:
            await publisher.send(Outgoing(PROGRESS.name, LOG_ID_KEY, first))
    return first.log_id


async def _identities(settings: KafkaSettings) -> list[LogIdentity]:
    async with LogReader(settings) as reader:
        records = await reader.read_all(PROGRESS.name)
    found: list[LogIdentity] = []
    for record in records:
        if record.key == LOG_ID_KEY:
            event = event_of(record, PROGRESS)
            if not isinstance(event, LogIdentity):
                raise MalformedEvent(f"{PROGRESS.name}: key {LOG_ID_KEY} holds a {type(event).__name__}")
            found.append(event)
    return found
