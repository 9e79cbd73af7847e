"""Reasons are types: what people write never becomes one of ours, and what an earlier release wrote is still read."""

import json

import pytest

from schemas import (
    Context,
    DropReason,
    Event,
    ExactGrader,
    GroupDropped,
    Member,
    Outcome,
    Reward,
    Rollout,
    Task,
    Trajectory,
    Unscorable,
    UnscorableReason,
    Verdict,
)
from schemas.codec import decode, encode
from schemas.topics import REWARDS, ROLLOUTS, TRAJECTORIES, VERDICTS, TopicSpec

CONTEXT = Context(group_id="g", sample_index=0, digest="d", domain="math", prompt_id="p")
TASK = Task(prompt_id="p", domain="math", grader=ExactGrader(answer="4"))
LATE = Unscorable(UnscorableReason.DEADLINE)

SAMPLES: list[tuple[Rollout | Verdict | Reward, TopicSpec, str]] = [
    (Rollout(rollout_id="r", group_id="g", task=TASK, unscorable=LATE), ROLLOUTS, "unscorable"),
    (Verdict(execution_id="e", context=CONTEXT, unscorable=LATE), VERDICTS, "fault"),
    (Reward(context=CONTEXT, unscorable=LATE), REWARDS, "unscorable"),
]


def read(written: dict[str, object], topic: TopicSpec) -> Rollout | Verdict | Reward:
    event = decode(json.dumps(written).encode(), topic)
    assert isinstance(event, Rollout | Verdict | Reward)
    return event


def written(event: Event, topic: TopicSpec) -> dict[str, object]:
    return json.loads(encode(event, topic))


@pytest.mark.parametrize(("event", "topic", "words"), SAMPLES)
def test_a_reason_comes_back_and_is_there_in_words_for_the_first_releases(
    event: Rollout | Verdict | Reward, topic: TopicSpec, words: str
) -> None:
    as_json = written(event, topic)
    assert as_json["failure"] == {"reason": "deadline"}
    assert as_json[words] == "deadline"  # what a reader of the first release cuts its reason from
    assert read(as_json, topic) == event


@pytest.mark.parametrize(("event", "topic", "words"), SAMPLES)
@pytest.mark.parametrize("said", ["deadline", "deadline: the queue was long", "poisoned:", "jail died"])
def test_words_alone_are_no_reason_of_ours(
    event: Rollout | Verdict | Reward, topic: TopicSpec, words: str, said: str
) -> None:
    """What an earlier release, or an external grader, has put on the log."""
    as_json = written(event, topic)
    del as_json["failure"]
    told = read({**as_json, words: said}, topic).unscorable
    assert told is not None
    assert told.reason == (UnscorableReason.GRADER_FAULT if topic is VERDICTS else UnscorableReason.OTHER)
    assert (told.detail, told.drop_reason) == (said, DropReason.BELOW_MINIMUM)


@pytest.mark.parametrize(("event", "topic", "words"), SAMPLES)
def test_what_anybody_may_have_written_keeps_its_words_only(
    event: Rollout | Verdict | Reward, topic: TopicSpec, words: str
) -> None:
    plain = event.in_words()
    assert plain.unscorable is not None
    assert (plain.unscorable.drop_reason, plain.unscorable.detail) == (DropReason.BELOW_MINIMUM, "deadline")
    assert plain == read({**written(event, topic), "failure": None}, topic)


def test_a_scorable_event_says_nothing_of_failure() -> None:
    reward = Reward(context=CONTEXT, reward=1.0)
    assert (reward.unscorable, reward.unscorable_words, reward.in_words()) == (None, None, reward)


def test_a_reason_of_a_later_release_is_read() -> None:
    event, topic, _ = SAMPLES[2]
    later = read({**written(event, topic), "failure": {"reason": "moon_phase"}, "unscorable": "moon_phase"}, topic)
    assert later.unscorable is not None
    assert (later.unscorable.reason, later.unscorable.drop_reason) == (UnscorableReason.OTHER, DropReason.BELOW_MINIMUM)


def test_a_member_of_an_earlier_release_is_read() -> None:
    members = (Member(sample_index=0, digest="d", unscorable=LATE), Member(sample_index=1, digest="e", reward=1.0))
    group = Trajectory(group_id="g", log_id="l", domain="math", prompt_id="p", num_samples=2, members=members)
    as_json = json.loads(encode(group, TRAJECTORIES))
    assert decode(json.dumps(as_json).encode(), TRAJECTORIES) == group
    assert as_json["members"][0].pop("failure") == {"reason": "deadline"}
    before = decode(json.dumps(as_json).encode(), TRAJECTORIES)
    assert isinstance(before, Trajectory)
    assert before.members[0].unscorable == Unscorable(UnscorableReason.OTHER, "deadline")
    assert before.members[1].unscorable is None


@pytest.mark.parametrize(
    ("reason", "ends"),
    [
        ("too_long", "too_long"),
        ("deadline", "deadline"),
        ("cancelled", "cancelled"),
        ("run_ended", "run_ended"),
        ("poisoned", "poisoned"),
        ("version_gone", "below_minimum"),
        ("sampling_failed", "below_minimum"),
        ("grader_fault", "below_minimum"),
        ("other", "below_minimum"),
    ],
)
def test_how_a_group_ends_whose_samples_failed(reason: str, ends: str) -> None:
    assert Unscorable(UnscorableReason(reason), "deadline").drop_reason == ends


def test_the_ledger_knows_every_way_to_end() -> None:
    assert set(Outcome) == {"trained", *DropReason}
    dropped = GroupDropped(group_id="g", log_id="l", domain="math", reason=DropReason.STALE)
    assert Outcome(dropped.reason) == Outcome.STALE
