"""One way from a record to its event: who stops, who puts aside, and what the words of strangers count for."""

import pytest

from schemas import MalformedEvent, Rollout, Unscorable, UnscorableReason
from schemas.topics import ROLLOUTS
from tests.unit.wire.doubles import MemoryPublisher, record, rollout
from wire.errors import UpgradeFirst
from wire.kafka.dead_letters import DeadLetterKind
from wire.kafka.events import EventReader, event_of, glance, readable
from wire.metrics import Metrics

LATER = b'{"type": "rollout", "schema_version": 2}'


def test_a_newer_release_of_ours_stops_its_reader_and_not_an_onlooker() -> None:
    ours, theirs = record(LATER, writer="rollout"), record(LATER, writer="somebody")
    for read in (event_of, readable):
        with pytest.raises(UpgradeFirst, match=r"rollout wrote to rollouts \[0\] at 0"):
            read(ours, ROLLOUTS)
    assert (readable(theirs, ROLLOUTS), glance(ours, ROLLOUTS), glance(theirs, ROLLOUTS)) == (None, None, None)


def test_what_is_malformed_is_passed_over() -> None:
    with pytest.raises(MalformedEvent):
        event_of(record(b"{"), ROLLOUTS)
    assert (readable(record(b"{"), ROLLOUTS), glance(record(b"{"), ROLLOUTS)) == (None, None)


@pytest.mark.parametrize(("role", "letters", "skipped"), [("dispatch", 1, 0), ("collect", 0, 1)])
async def test_the_first_reader_alone_puts_aside(role: str, letters: int, skipped: int) -> None:
    publisher, metrics = MemoryPublisher(), Metrics()
    events = EventReader(role, publisher, metrics)
    assert await events.read(record(b"{", offset=7), ROLLOUTS) is None
    assert [(at.offset, kind) for at, _, _, kind in publisher.letters] == [(7, DeadLetterKind.MALFORMED)] * letters
    assert metrics.registry.get_sample_value(
        "headwater_skipped_events_total", {"hop": role, "reason": "malformed"}
    ) == (skipped or None)
    assert await events.read(record(rollout("g")), ROLLOUTS) == rollout("g")


@pytest.mark.parametrize(("writer", "reason"), [("rollout", UnscorableReason.DEADLINE), ("", UnscorableReason.OTHER)])
def test_a_reason_counts_when_one_of_our_roles_gives_it(writer: str, reason: UnscorableReason) -> None:
    said = Rollout(
        rollout_id="g-0", group_id="g", task=rollout("g").task, unscorable=Unscorable(UnscorableReason.DEADLINE)
    )
    read = event_of(record(said, writer=writer), ROLLOUTS)
    assert read.unscorable is not None
    assert (read.unscorable.reason, read.unscorable_words) == (reason, "deadline")
