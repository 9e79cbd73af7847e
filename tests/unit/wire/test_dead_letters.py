"""What a dead letter tells a person, and whose it is to write."""

import pytest

from schemas import RoleName
from schemas.topics import FIXED_TOPICS, first_reader, read_by
from tests.unit.wire.doubles import record
from wire.kafka.dead_letters import (
    MAX_REASON_CHARACTERS,
    DeadLetterKind,
    dead_letter_headers,
    dead_letter_key,
)


def test_headers_say_why_from_where_how_often_and_since_when() -> None:
    headers = dead_letter_headers(
        record(b"{", offset=17, writer=""), "not JSON", DeadLetterKind.MALFORMED, 3, 12.5, "dispatch"
    )
    assert headers == {
        "reason": b"not JSON",
        "kind": b"malformed",
        "origin-topic": b"rollouts",
        "origin-partition": b"0",
        "origin-offset": b"17",
        "origin-key": b"g",
        "origin-writer": b"",
        "attempts": b"3",
        "first-seen": b"12.500",
        "writer": b"dispatch",
    }


def test_key_is_the_origin() -> None:
    assert dead_letter_key(record(b"", offset=17)) == "rollouts/0/17"


def test_a_long_reason_is_cut() -> None:
    headers = dead_letter_headers(record(b""), "x" * 100_000, DeadLetterKind.MALFORMED, 1, 0.0, "dispatch")
    assert len(headers["reason"]) == MAX_REASON_CHARACTERS


def test_every_topic_that_is_read_has_one_first_reader() -> None:
    readers = {spec.name: first_reader(spec.name) for spec in FIXED_TOPICS if spec.name != "dead-letters"}
    assert readers["rollouts"] == "dispatch"
    assert readers["generations"] == "rollout"
    assert first_reader("prompts.sums") == "scheduler"
    assert first_reader("executions.lean") == "sandbox"
    with pytest.raises(KeyError):
        first_reader("dead-letters")


def test_a_consumer_group_is_behind_on_what_it_commits_and_on_nothing_else() -> None:
    assert read_by(RoleName.COLLECT) == ("generations", "rollouts", "rewards")
    assert read_by(RoleName.ROLLOUT) == ("generations",), "not weights: it reads all of them at each start"
    assert read_by(RoleName.LEARNER) == (), "its place is in its checkpoint"
    assert {role for spec in FIXED_TOPICS for role in spec.writers} == set(RoleName) - {"source", "recorder"}


@pytest.mark.parametrize(("writer", "role"), [("scheduler", "scheduler"), ("client", ""), ("", "")])
def test_only_our_roles_count_as_writers(writer: str, role: str) -> None:
    assert record(b"", writer=writer).writer == role
