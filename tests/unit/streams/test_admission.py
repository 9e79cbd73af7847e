"""What the scheduler admits, cancels and drains, and that a new one goes on where the old one stopped."""

from typing import Any
from zlib import crc32

import msgspec
import pytest

from schemas import (
    Cancel,
    CancelRequest,
    Drained,
    Event,
    Generation,
    Pause,
    PolicyVersion,
    Prompt,
    Purpose,
    Resume,
    SourceEnd,
    SourcePosition,
    SourceProgress,
)  # fmt: skip
from schemas.topics import GENERATIONS
from streams.scheduler.admission import Admission, AdmissionConfig
from tests.unit.streams.events import LOG, RUN, progress, prompt, record
from wire.kafka.records import Outgoing

PARTITIONS = 2
ENDS = {0: 10, 1: 20}


def partition_of(key: str) -> int:
    return crc32(key.encode()) % PARTITIONS


class Scheduler:
    """An Admission with B = 2, η = 1 (so 4 groups outstanding), and the log it writes."""

    def __init__(self, sources: frozenset[tuple[str, str]] = frozenset(), started: bool = True, **rest: int) -> None:
        self.admission = Admission(
            AdmissionConfig(
                run_id=RUN, log_id=LOG, partitions=PARTITIONS, batch_groups=2, max_staleness=1,
                max_open_evaluations=rest.get("max_open_evaluations", 1),
                max_buffered_prompts=rest.get("max_buffered_prompts", 8), sources=sources,
            ),
            partition_of,
        )  # fmt: skip
        self.log: list[Outgoing] = []
        self.offsets: dict[str, int] = {}
        if started:
            self.admission.rebuilt(progress())

    def prompts(self, *events: Event, topic: str = "prompts.math") -> None:
        for event in events:
            offset = self.offsets.get(topic, 0)
            self.offsets[topic] = offset + 1
            for lane in (self.admission.train, self.admission.evaluate):
                lane.offer(event, record(topic, offset))

    def admit(self, now: float = 0.0) -> list[Event]:
        outs = self.admission.admit(now, ENDS)
        self.log += outs
        self.admission.published()
        return [out.event for out in outs]

    def names(self, now: float = 0.0) -> list[str]:
        return [event.prompt_id for event in self.admit(now) if isinstance(event, Generation)]

    def restarted(
        self, *, written: int | None = None, sources: frozenset[tuple[str, str]] = frozenset()
    ) -> "Scheduler":
        """A new scheduler after a crash that left `written` of the events on the log."""
        new = Scheduler(sources=sources, started=False)
        for offset, out in enumerate(self.log[:written]):
            new.admission.rebuild(out.event, record("generations", offset, out.partition or 0))
        return new


def train(count: int, start: int = 0, **rest: Any) -> list[Prompt]:
    return [prompt(f"p{i}", **rest) for i in range(start, start + count)]


def test_train_groups_are_admitted_up_to_the_bound_and_numbered() -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(6))
    admitted = scheduler.admit(now=7.0)
    assert [(g.admission_number, g.prompt_id, g.admitted_at) for g in admitted if isinstance(g, Generation)] == [
        (i, f"p{i}", 7.0) for i in range(4)
    ]  # fmt: skip
    assert scheduler.admission.outstanding == 4
    scheduler.admission.on_progress(progress(1, 3))
    assert scheduler.names() == ["p4", "p5"]


def test_a_train_group_names_the_newest_weights_that_the_learner_has_published() -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(6))
    scheduler.admit()
    scheduler.admission.on_progress(msgspec.structs.replace(progress(1, 3), weights=PolicyVersion(1, 1)))
    admitted = [event for event in scheduler.admit() if isinstance(event, Generation)]
    assert [generation.least_policy_version for generation in admitted] == [PolicyVersion(1, 1)] * 2


def test_a_generation_says_where_its_rollouts_begin() -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(4))
    scheduler.admit()
    for out in scheduler.log:
        assert isinstance(out.event, Generation)
        assert out.partition == partition_of(out.key)
        assert out.event.rollouts_end_offset == ENDS[out.partition]
        assert (out.event.prompt_topic, out.event.run_id, out.event.min_samples) == ("prompts.math", RUN, 2)


def test_nothing_is_admitted_before_the_learner_has_spoken() -> None:
    scheduler = Scheduler(started=False)
    scheduler.admission.rebuilt(None)
    scheduler.prompts(*train(1))
    assert scheduler.admit() == []
    scheduler.admission.on_progress(progress(log_id="another log"))
    assert scheduler.admit() == []
    scheduler.admission.on_progress(progress())
    assert scheduler.names() == ["p0"]


def test_an_identity_is_admitted_once() -> None:
    scheduler = Scheduler()
    first = prompt("p0")
    scheduler.prompts(first, first, prompt("p0", epoch=1), prompt("p0", domain="code"))
    assert scheduler.names() == ["p0", "p0", "p0"]
    assert scheduler.admission.duplicates_dropped == 1


def test_prompts_without_an_id_are_told_apart_by_their_place() -> None:
    scheduler = Scheduler()
    nameless = Prompt(domain="math", grader=prompt("p").grader, messages=prompt("p").messages)
    scheduler.prompts(nameless, nameless)
    assert len({out.key for out in scheduler.log or (scheduler.admit() and scheduler.log)}) == 2


def test_the_floor_never_passes_a_prompt_that_is_not_durably_admitted() -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(6))
    lane, place = scheduler.admission.train, ("prompts.math", 0)
    assert lane.floor(place) == 0
    scheduler.admission.admit(0.0, ENDS)
    assert lane.floor(place) == 0
    scheduler.admission.published()
    assert lane.floor(place) == 4
    assert lane.floor(("prompts.code", 0)) is None


def test_a_lane_buffers_up_to_its_bound_and_passes_over_the_other_purpose() -> None:
    scheduler = Scheduler(max_buffered_prompts=2)
    place = ("prompts.math", 0)
    scheduler.prompts(*train(2), prompt("e", Purpose.EVALUATE))
    assert not scheduler.admission.train.wants(place)
    assert scheduler.admission.evaluate.wants(place)
    assert scheduler.admission.evaluate.floor(place) == 2


def test_prompt_streams_take_turns_and_one_can_be_paused() -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(3))
    scheduler.prompts(*train(3, 3, domain="code"), topic="prompts.code")
    assert scheduler.names() == ["p0", "p3", "p1", "p4"]
    scheduler.admission.on_control(Pause(domain="math"))
    scheduler.admission.on_progress(progress(4))
    assert scheduler.names() == ["p5"]
    scheduler.admission.on_control(Pause())
    scheduler.admission.on_control(Resume(domain="math"))
    assert scheduler.names() == []
    scheduler.admission.on_control(Resume())
    assert scheduler.names() == ["p2"]


def test_evaluations_have_a_bound_of_their_own() -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(9), *(prompt(f"e{i}", Purpose.EVALUATE) for i in range(3)))
    assert scheduler.names() == ["p0", "p1", "p2", "p3"]  # no policy is published yet
    scheduler.admission.on_weights(PolicyVersion(1, 3))
    scheduler.admission.on_weights(PolicyVersion(1, 2))
    (group,) = scheduler.admit()
    assert isinstance(group, Generation)
    assert (group.prompt_id, group.admission_number, group.policy_version) == ("e0", None, PolicyVersion(1, 3))
    assert scheduler.names() == []
    scheduler.admission.on_evaluation(group.group_id)
    assert scheduler.names(now=10.0) == ["e1"]
    assert scheduler.names(now=3665.0) == []
    assert scheduler.names(now=3675.0) == ["e2"]  # the end of e1 never came


@pytest.mark.parametrize("by", ["group", "prompt", "run"])
def test_cancel_ends_open_groups_once(by: str) -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(2))
    scheduler.admit()
    key = scheduler.log[1].key
    request = {"group": CancelRequest(group_id=key), "prompt": CancelRequest(prompt_id="p1"), "run": CancelRequest()}[
        by
    ]
    scheduler.admission.on_control(request)
    scheduler.admission.on_control(request)
    cancelled = [event.group_id for event in scheduler.admit() if isinstance(event, Cancel)]
    assert sorted(cancelled) == sorted([key] if by != "run" else [out.key for out in scheduler.log[:2]])
    assert {out.partition for out in scheduler.log if out.key == key} == {partition_of(key)}
    scheduler.admission.on_control(CancelRequest(run_id="another run"))
    assert scheduler.admit() == []


def test_a_resumed_learner_counts_whether_it_says_more_or_less() -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(12))
    scheduler.admit()
    scheduler.admission.on_progress(progress(4))
    scheduler.admit()
    scheduler.admission.on_progress(progress(2, incarnation=2))
    assert scheduler.admission.outstanding == 6
    assert scheduler.admit() == []
    scheduler.admission.on_progress(progress(8, incarnation=1))  # a fenced learner's last word
    assert scheduler.admission.outstanding == 6
    scheduler.admission.on_progress(progress(5, incarnation=2))
    assert scheduler.names() == ["p8"]


def test_a_closing_learner_ends_every_open_group_and_drains_each_partition() -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(6))
    scheduler.admit()
    scheduler.admission.on_progress(progress(2, closing=True))
    events = scheduler.admit()
    assert [(e.admission_number, e.reason) for e in events if isinstance(e, Cancel)] == [
        (2, "run_ended"),
        (3, "run_ended"),
    ]
    drained = [out for out in scheduler.log if isinstance(out.event, Drained)]
    assert [(out.partition, out.event) for out in drained] == [
        (p, Drained(run_id=RUN, log_id=LOG, admitted=4, reason="run_ended", incarnation=1)) for p in range(PARTITIONS)
    ]  # fmt: skip
    assert isinstance(events[-1], Drained)
    assert scheduler.admit() == []
    scheduler.admission.on_progress(progress(4, closing=True))
    assert scheduler.admit() == []


def test_a_learner_that_went_back_behind_the_end_is_given_more_and_its_own_end() -> None:
    scheduler = Scheduler()
    scheduler.prompts(*train(2))
    scheduler.admit()
    scheduler.admission.on_progress(progress(2, closing=True))
    scheduler.admit()
    scheduler.admission.on_progress(progress(2, incarnation=2))
    scheduler.prompts(*train(1, 2))
    assert scheduler.names() == ["p2"]
    scheduler.admission.on_progress(progress(3, incarnation=2, closing=True))
    ends = [(event.admitted, event.incarnation) for event in scheduler.admit() if isinstance(event, Drained)]
    assert ends == [(3, 2), (3, 2)]
    scheduler.admission.on_progress(progress(3, incarnation=3, closing=True))
    ends = [(event.admitted, event.incarnation) for event in scheduler.admit() if isinstance(event, Drained)]
    assert ends == [(3, 3), (3, 3)]


SOURCES = frozenset({("s", "math"), ("s", "code")})


def test_the_run_drains_when_every_source_has_ended_and_its_prompts_are_admitted() -> None:
    scheduler = Scheduler(SOURCES)
    scheduler.prompts(*train(5), SourceEnd(source="s", domain="math", count=5))
    scheduler.prompts(SourceEnd(source="s", domain="code", count=0), topic="prompts.code")
    assert all(isinstance(event, Generation) for event in scheduler.admit())
    scheduler.admission.on_progress(progress(1))
    events = scheduler.admit()
    assert isinstance(events[0], Generation)
    assert [e for e in events[1:] if not isinstance(e, Drained)] == []
    assert {(e.admitted, e.reason) for e in events if isinstance(e, Drained)} == {(5, "sources_ended")}
    scheduler.admission.on_progress(progress(5))
    scheduler.prompts(*train(1, 9))
    assert scheduler.admit() == []


def test_a_new_scheduler_goes_on_with_numbers_identities_and_open_groups() -> None:
    old = Scheduler()
    old.prompts(*train(4))
    old.admit()
    new = old.restarted(written=3)  # the last one was not durable: its prompt was not committed either
    new.admission.rebuilt(progress(1))
    new.prompts(*train(6))
    assert [(e.admission_number, e.prompt_id) for e in new.admit() if isinstance(e, Generation)] == [
        (3, "p3"), (4, "p4"),
    ]  # fmt: skip
    new.admission.on_control(CancelRequest(prompt_id="p1"))
    assert [type(event) for event in new.admit()] == [Cancel]
    new.admission.on_control(CancelRequest(prompt_id="p0"))
    assert new.admit() == []  # it has ended


def test_a_number_lost_amid_a_concurrent_send_is_given_again() -> None:
    old = Scheduler()
    old.prompts(*train(4))
    old.admit()
    del old.log[1]
    new = old.restarted()
    new.admission.rebuilt(progress(1))
    assert (new.admission.admitted, new.admission.outstanding) == (3, 2)
    new.prompts(*train(6))
    assert [e.admission_number for e in new.admit() if isinstance(e, Generation)] == [1, 4]


def test_expired_generations_are_known_from_progress() -> None:
    new = Scheduler(started=False)
    new.admission.rebuilt(progress(3, 4))
    assert (new.admission.admitted, new.admission.outstanding) == (4, 0)
    new.prompts(*train(2))
    assert [e.admission_number for e in new.admit() if isinstance(e, Generation)] == [3, 5]


def test_a_new_scheduler_repeats_what_was_cut_off_of_the_end() -> None:
    old = Scheduler()
    old.prompts(*train(2))
    old.admit()
    old.admission.on_progress(progress(0, closing=True))
    old.admit()
    new = old.restarted(written=4)  # two generations, one cancel of two, …
    new.admission.rebuilt(progress(0, closing=True))
    kinds = [type(event) for event in new.admit()]
    assert kinds == [Drained, Drained]
    new = old.restarted(written=3)
    new.admission.rebuilt(progress(0, closing=True))
    assert [type(event) for event in new.admit()] == [Cancel, Drained, Drained]
    new = old.restarted(written=5)
    new.admission.rebuilt(progress(0, closing=True))
    assert [type(event) for event in new.admit()] == [Drained]


def test_a_source_end_is_read_again_by_a_new_scheduler() -> None:
    sources = frozenset({("s", "math")})
    old = Scheduler(sources)
    old.prompts(*train(1), SourceEnd(source="s", domain="math", count=1))
    old.admit()
    assert old.admission.train.floor(("prompts.math", 0)) == 1
    new = old.restarted(written=2, sources=sources)  # a Drained to the first partition only
    new.admission.rebuilt(progress())
    assert [type(event) for event in new.admit()] == [Drained]


def test_pauses_hold_over_a_restart() -> None:
    scheduler = Scheduler()
    scheduler.admission.restore_control(Pause(domain="math"))
    scheduler.admission.restore_control(CancelRequest())
    scheduler.prompts(*train(1))
    assert scheduler.admit() == []


def test_tasks_that_ended_in_an_earlier_log_are_not_admitted_again() -> None:
    scheduler = Scheduler(started=False)
    scheduler.admission.rebuilt(progress(sources={"s": SourceProgress(low=1, above=(2,))}))
    scheduler.prompts(*(prompt(f"p{i}", source=SourcePosition(source="s", index=i)) for i in range(4)))
    assert scheduler.names() == ["p1", "p3"]


def test_identities_are_kept_as_long_as_their_generations() -> None:
    assert GENERATIONS.retention_seconds is not None
    scheduler = Scheduler()
    scheduler.prompts(*train(1), *train(1))
    scheduler.admit(now=0.0)
    scheduler.prompts(*train(1))
    assert scheduler.names(now=GENERATIONS.retention_seconds) == []
    scheduler.prompts(*train(1))
    assert scheduler.names(now=GENERATIONS.retention_seconds + 1.0) == ["p0"]
