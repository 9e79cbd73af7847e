"""How groups gather and how they end."""

import pytest

from schemas import Drained, DropReason, Event, GroupDropped, Purpose, Reward, Rollout, Trajectory, Unscorable
from schemas import UnscorableReason as Why
from streams.collect.gather import End, Gather
from streams.collect.group import Close, assemble, give_up
from tests.unit.streams.events import cancel, drained, fault, generation, record, reward, rollout
from wire.kafka.records import Outgoing

TOPIC_OF = {Rollout: "rollouts", Reward: "rewards"}


class Log:
    """A Gather with one partition, and offsets that count up a topic."""

    def __init__(self) -> None:
        self.gather = Gather()
        self.gather.assigned(0, 0)
        self.next = {"generations": 0, "rollouts": 0, "rewards": 0}

    def put(self, *events: Event, now: float = 0.0) -> list[End]:
        outs: list[End] = []
        for event in events:
            topic = TOPIC_OF.get(type(event), "generations")
            outs += self.gather.handle(event, record(topic, self.next[topic]), now)
            self.next[topic] += 1
        return outs

    def floors(self) -> tuple[int | None, ...]:
        return tuple(self.gather.floor(topic, 0) for topic in self.next)


def ending(outs: list[End]) -> list[tuple[str, str]]:
    named: list[tuple[str, str]] = []
    for out in outs:
        if isinstance(out, Close):
            named.append((out.blank.group_id, "close"))
        elif isinstance(out.event, GroupDropped):
            named.append((out.event.group_id, out.event.reason.value))
        else:
            assert isinstance(out.event, Drained)
            named.append(("", "drained"))
    return named


A, B = rollout(index=0, text="4"), rollout(index=1, text="5")


def test_a_whole_group_closes_and_is_assembled() -> None:
    log = Log()
    assert log.put(generation(), A, reward(A, 1.0), B) == []
    (close,) = log.put(reward(B, 0.0))
    assert isinstance(close, Close)
    assert close.offsets == [0, 1]
    out = assemble(close, {0: A, 1: B})
    assert (out.topic, out.key, out.partition) == ("trajectories", "g", 0)
    assert isinstance(out.event, Trajectory)
    assert [(member.reward, member.text, member.spans) for member in out.event.members] == [
        (1.0, "4", A.spans), (0.0, "5", B.spans),
    ]  # fmt: skip
    assert (out.event.admission_number, out.event.temperature, out.event.prompt_text) == (0, 0.5, "")


def test_order_between_topics_does_not_matter() -> None:
    for order in ([reward(A, 1.0), reward(B, 0.0), B, A], [B, reward(A, 1.0), A, reward(B, 0.0)]):
        log = Log()
        assert ending(log.put(generation(), *order)) == [("g", "close")]


def test_members_wait_until_their_generation_is_read() -> None:
    log = Log()
    assert log.put(A, reward(A, 1.0), B, reward(B, 0.0)) == []
    assert log.floors() == (None, 0, 0)
    assert ending(log.put(generation())) == [("g", "close")]


def test_a_member_of_an_ended_group_is_late() -> None:
    log = Log()
    log.put(generation(), cancel(), A, reward(A, 1.0))
    assert log.gather.late_dropped == 2


def test_the_first_rollout_in_log_order_wins_and_only_its_reward_counts() -> None:
    log = Log()
    again = rollout(index=0, text="other tokens")
    log.put(generation(), reward(again, -1.0), A, again, reward(A, 1.0), B)
    (close,) = log.put(reward(B, 0.0))
    assert isinstance(close, Close)
    assert [(offset, got.reward) for offset, got in close.members.values() if got] == [(0, 1.0), (2, 0.0)]
    assert log.gather.duplicates_dropped == 1


def test_a_second_reward_of_a_rollout_changes_nothing() -> None:
    log = Log()
    log.put(generation(), A, reward(A, 1.0), reward(A, 0.5), B)
    (close,) = log.put(reward(B, 0.0))
    assert isinstance(close, Close)
    assert close.members[0][1] == reward(A, 1.0)


def test_zero_spread_drops_a_train_group_and_keeps_its_mean() -> None:
    log = Log()
    (out,) = log.put(generation(), A, reward(A, 0.5), B, reward(B, 0.5))
    assert isinstance(out, Outgoing)
    assert isinstance(out.event, GroupDropped)
    assert (out.event.reason, out.event.mean_reward) == (DropReason.ZERO_SPREAD, 0.5)
    assert out.event.source is not None


@pytest.mark.parametrize(
    ("reasons", "ends"),
    [
        ((Unscorable(Why.TOO_LONG), Unscorable(Why.TOO_LONG)), "too_long"),
        ((Unscorable(Why.POISONED), Unscorable(Why.POISONED)), "poisoned"),
        ((Unscorable(Why.DEADLINE), Unscorable(Why.DEADLINE)), "deadline"),
        ((Unscorable(Why.POISONED), Unscorable(Why.TOO_LONG)), "below_minimum"),
        ((fault("grader died"), fault("grader died")), "below_minimum"),
        ((fault("deadline: mine"), fault("deadline")), "below_minimum"),
    ],
)
def test_a_group_without_scores_ends_as_its_members_say(reasons: tuple[Unscorable, Unscorable], ends: str) -> None:
    log = Log()
    outs = log.put(generation(), *(rollout(index=i, unscorable=reason) for i, reason in enumerate(reasons)))
    assert ending(outs) == [("g", ends)]
    log = Log()
    outs = log.put(generation(), A, B, *(reward(r, None, why) for r, why in zip((A, B), reasons, strict=True)))
    assert ending(outs) == [("g", ends)]


def test_an_unscorable_member_stays_out_of_the_baseline() -> None:
    c = rollout(index=2, text="6")
    log = Log()
    outs = log.put(
        generation(num_samples=3, min_samples=2), A, B, c, reward(A, 1.0), reward(B, None, fault("jail died"))
    )
    assert outs == []
    (close,) = log.put(reward(c, 0.0))
    assert isinstance(close, Close)
    trajectory = assemble(close, {0: A, 1: B, 2: c}).event
    assert isinstance(trajectory, Trajectory)
    assert [(m.reward, m.unscorable, bool(m.spans)) for m in trajectory.members] == [
        (1.0, None, True), (None, fault("jail died"), False), (0.0, None, True),
    ]  # fmt: skip


def test_at_its_deadline_a_group_ends_with_what_is_there() -> None:
    log = Log()
    log.put(generation("x", 0, 3, 2), generation("y", 1, 3, 2))
    for index, value in ((0, 1.0), (1, 0.0)):
        answer = rollout("x", index)
        log.put(answer, reward(answer, value))
    log.put(rollout("y", 0), reward(rollout("y", 0), 1.0))
    assert log.gather.tick(99.9) == []
    assert ending(log.gather.tick(100.0)) == [("x", "close"), ("y", "deadline")]


def test_a_group_without_any_rollout_ends_too() -> None:
    log = Log()
    log.put(generation())
    assert ending(log.gather.tick(100.0)) == [("g", "deadline")]


def test_after_an_outage_the_log_is_read_before_the_deadline_counts() -> None:
    log = Log()
    log.put(generation(deadline_seconds=100.0), now=1000.0)
    assert log.gather.tick(1029.0) == []
    assert ending(log.gather.tick(1030.0)) == [("g", "deadline")]


def test_cancel_ends_an_open_group_once() -> None:
    log = Log()
    assert ending(log.put(generation(), cancel(reason="run_ended"), cancel())) == [("g", "run_ended")]


def test_drained_follows_the_published_ends_of_its_partition() -> None:
    log = Log()
    outs = log.put(generation("x", 0), generation("e", None, purpose=Purpose.EVALUATE), drained(1), generation("y", 1))
    assert outs == []
    (end,) = log.put(cancel("x"))
    assert isinstance(end, Outgoing)
    assert ending(log.put(generation("z", 2))) == []  # the end is not published yet
    log.gather.published([end])
    (word,) = log.gather.tick(1.0)
    assert isinstance(word, Outgoing)
    assert (word.event, word.topic, word.partition) == (drained(1), "trajectories", 0)
    assert log.floors()[0] == 1  # the evaluation group
    log.gather.published([word])
    assert log.gather.tick(2.0) == []


def test_evaluation_groups_end_on_evaluations_whatever_their_spread() -> None:
    a, b = (rollout(index=i, purpose=Purpose.EVALUATE) for i in range(2))
    log = Log()
    outs = log.put(generation(purpose=Purpose.EVALUATE), a, b, reward(a, 1.0), reward(b, 1.0))
    (close,) = outs
    assert isinstance(close, Close)
    out = assemble(close, {0: a, 1: b})
    assert isinstance(out.event, Trajectory)
    assert (out.topic, out.event.prompt_text, out.event.admission_number) == ("evaluations", "2+2?", None)
    log = Log()
    log.put(generation(purpose=Purpose.EVALUATE))
    (dropped,) = log.gather.tick(100.0)
    assert isinstance(dropped, Outgoing)
    assert dropped.topic == "evaluations"


def test_scored_answers_end_at_rewards() -> None:
    log = Log()
    answer = rollout(purpose=Purpose.SCORE, generation_offset=None)
    assert log.put(answer, reward(answer, 1.0)) == []
    assert log.gather.late_dropped == 0


def test_floors_hold_until_the_end_is_published() -> None:
    log = Log()
    log.put(generation(), A, B, reward(A, 1.0))
    assert log.floors() == (0, 0, 0)
    (close,) = log.put(reward(B, 0.0))
    assert log.floors() == (0, 0, 0)
    assert log.gather.tick(1.0) == [close]  # publishing failed: here it is again
    assert isinstance(close, Close)
    log.gather.published([assemble(close, {0: A, 1: B})])
    assert log.floors() == (None, None, None)
    assert log.gather.tick(1.0) == []


def test_an_ended_group_above_an_open_one_is_replayed_whole() -> None:
    log = Log()
    y0, y1, x0 = rollout("y", 0, generation_offset=1), rollout("y", 1, generation_offset=1), rollout("x", 0)
    log.put(generation("x", 0), generation("y", 1), y0, y1, x0, reward(y0, 1.0), reward(x0, 1.0))
    (close,) = log.put(reward(y1, 0.0))
    assert isinstance(close, Close)
    log.gather.published([assemble(close, {0: y0, 1: y1})])
    assert log.floors() == (0, 0, 0)  # not (0, 2, 1): y opens again in a replay, and must end again at once
    (end,) = log.put(cancel("x"))
    assert isinstance(end, Outgoing)
    log.gather.published([end])
    assert log.floors() == (None, None, None)


def test_events_read_again_change_nothing() -> None:
    log = Log()
    log.put(generation(), A, B, reward(A, 1.0))
    for topic, event in (("generations", generation()), ("rollouts", A), ("rewards", reward(A, 1.0))):
        assert log.gather.handle(event, record(topic, 0), 0.0) == []
    assert ending(log.put(reward(B, 0.0))) == [("g", "close")]


def test_a_doubled_generation_does_not_open_its_group_again() -> None:
    log = Log()
    (end,) = log.put(generation(), cancel())
    assert isinstance(end, Outgoing)
    log.gather.published([end])
    assert log.put(generation()) == []
    assert (log.gather.open_groups, log.floors()[0]) == (0, None)


def test_a_revoked_partition_is_forgotten() -> None:
    log = Log()
    log.put(generation(), A)
    log.gather.revoked(0)
    assert log.floors() == (None, None, None)
    assert log.gather.tick(1000.0) == []


def test_assembling_another_rollout_is_an_error() -> None:
    log = Log()
    (close,) = log.put(generation(), A, B, reward(A, 1.0), reward(B, 0.0))
    assert isinstance(close, Close)
    with pytest.raises(ValueError, match="offset 0"):
        assemble(close, {0: B, 1: A})
    out = give_up(close, DropReason.TOO_LONG, "17 MiB")
    assert isinstance(out.event, GroupDropped)
    assert (out.event.reason, out.event.mean_reward) == (DropReason.TOO_LONG, 0.5)
