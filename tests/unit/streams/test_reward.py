"""From verdicts to rewards; and the sandbox worker's own pure part."""

import pytest

from sandbox.judgement import Judgement
from schemas import Execution, Reward, TestVerdict, Verdict, VerdictKind
from streams.grading.reward import RewardHop, reward_of
from streams.grading.sandbox_worker import fault_of, verdict_of
from tests.unit.streams.events import GRADER, context, fault, record, rollout
from wire.metrics import Metrics

OK, WRONG = TestVerdict(kind=VerdictKind.ACCEPTED), TestVerdict(kind=VerdictKind.WRONG_ANSWER, detail="got 5")


def verdict(**rest: object) -> Verdict:
    return Verdict(execution_id="e", context=context(rollout()), **rest)  # type: ignore[arg-type]


def test_the_share_of_passed_tests() -> None:
    reward = reward_of(verdict(kind=VerdictKind.WRONG_ANSWER, tests=(OK, WRONG, OK, WRONG)))
    assert (reward.reward, reward.passed, reward.tests) == (0.5, 2, 4)
    assert reward.feedback.startswith("Passed 2/4 tests.")
    assert reward.unscorable is None


def test_what_does_not_compile_is_minus_one() -> None:
    reward = reward_of(verdict(kind=VerdictKind.COMPILE_ERROR, compile_log="line 1: no"))
    assert (reward.reward, reward.feedback) == (-1.0, "line 1: no")


def test_a_fault_is_no_grade() -> None:
    reward = reward_of(verdict(fault="jail died"))
    assert (reward.reward, reward.unscorable) == (None, fault("jail died"))


def test_a_verdict_that_says_nothing_is_no_grade() -> None:
    for empty in (verdict(), verdict(kind=VerdictKind.ACCEPTED), verdict(reward=float("nan"))):
        reward = reward_of(empty)
        assert reward.reward is None
        assert reward.unscorable


def test_an_external_grader_may_score_by_itself() -> None:
    reward = reward_of(verdict(reward=0.25, feedback="well", components={"style": 1.0}))
    assert (reward.reward, reward.feedback, reward.components) == (0.25, "well", {"style": 1.0})


def test_the_worker_says_what_the_judge_saw_or_why_nothing_was_seen() -> None:
    execution = Execution(execution_id="e", context=context(rollout()), program="", grader=GRADER)
    seen = verdict_of(execution, Judgement(VerdictKind.WRONG_ANSWER, (OK, WRONG), "", 0.5))
    assert (seen.topic, seen.key) == ("verdicts", "g")
    assert seen.event == verdict(kind=VerdictKind.WRONG_ANSWER, tests=(OK, WRONG), jail_seconds=0.5)
    assert fault_of(execution, fault("jail died")).event == verdict(fault="jail died")


def test_the_reward_of_a_users_function_goes_all_the_way() -> None:
    execution = Execution(execution_id="e", context=context(rollout()), program="", grader=GRADER)
    judged = Judgement(VerdictKind.ACCEPTED, (), "", reward=0.25, components={"style": 1.0})
    seen = verdict_of(execution, judged).event
    assert seen == verdict(kind=VerdictKind.ACCEPTED, reward=0.25, components={"style": 1.0})
    assert isinstance(seen, Verdict)
    reward = reward_of(seen)
    assert (reward.reward, reward.components, reward.unscorable) == (0.25, {"style": 1.0}, None)


@pytest.mark.parametrize("given_up", [False, True])
async def test_the_hop_sends_and_counts_every_reward(given_up: bool) -> None:
    hop = RewardHop(Metrics())
    judged = verdict(kind=VerdictKind.ACCEPTED, tests=(OK,))
    at = record("verdicts", 0)
    (out,) = hop.exhausted(judged, at, "why") if given_up else await hop.handle(judged, at)
    assert (out.topic, out.key) == ("rewards", "g")
    assert isinstance(out.event, Reward)
    assert (out.event.reward, out.event.unscorable) == ((None, fault("why")) if given_up else (1.0, None))
