"""What follows from a rollout."""

import msgspec
import pytest

from schemas import (
    ExactGrader,
    Execution,
    ExternalGrader,
    FunctionGrader,
    FunctionTest,
    Grader,
    NamedTest,
    PolicyVersion,
    ProjectGrader,
    Purpose,
    PythonGrader,
    Rollout,
    TokenSpan,
    Unscorable,
    UnscorableReason,
    Verdict,
    VerdictKind,
)  # fmt: skip
from schemas.ids import rollout_digest
from streams.grading.dispatch import Dispatch, context_of, dispatch, program_of
from streams.grading.text_components import text_components
from tests.unit.streams.events import fault, record, rollout

FUNCTION = FunctionGrader(entry_point="f", tests=(FunctionTest.of([1], 2),))
ANSWER = "Here:\n```python\ndef f(x):\n    return x + 1\n```\n"


def answered(text: str, grader: Grader, **rest: object) -> Rollout:
    plain = rollout(text=text)
    task = msgspec.structs.replace(plain.task, grader=grader)
    return msgspec.structs.replace(plain, task=task, **rest)  # type: ignore[arg-type]


def verdict_on(answer: Rollout) -> Verdict:
    out = dispatch(answer)
    assert (out.topic, out.key) == ("verdicts", answer.group_id)
    assert isinstance(out.event, Verdict)
    return out.event


def test_a_program_becomes_an_execution() -> None:
    out = dispatch(answered(ANSWER, FUNCTION))
    event = out.event
    assert isinstance(event, Execution)
    assert (out.topic, out.key) == ("executions", event.execution_id)
    assert (event.program, event.grader) == ("def f(x):\n    return x + 1\n", FUNCTION)
    assert event.context.generation_offset == 0
    assert event.context.components == {"format": 1.0, "repetition": 0.0}


def test_the_same_rollout_gives_the_same_execution_and_other_tokens_another() -> None:
    ids = {dispatch(answered(text, FUNCTION)).key for text in (ANSWER, ANSWER, ANSWER + "!")}
    assert len(ids) == 2


def test_a_grader_of_the_users_gets_the_whole_answer() -> None:
    out = dispatch(answered(ANSWER, ExternalGrader(name="mine", task={"n": 1})))
    assert isinstance(out.event, Execution)
    assert (out.topic, out.event.program) == ("executions.mine", ANSWER)
    own = dispatch(answered(ANSWER, PythonGrader(program="def reward(c, t): return 1")))
    assert isinstance(own.event, Execution)
    assert (own.topic, own.event.program) == ("executions", ANSWER)


def test_a_project_gets_the_patch_of_an_answer() -> None:
    grader = ProjectGrader(files={}, test="true", tests=(NamedTest(id="a"),))
    text = "Fix:\n```diff\n--- a/x\n+++ b/x\n```\nso that\n```python\nx = 1\n```\n"
    assert program_of(text, grader) == "--- a/x\n+++ b/x\n"
    assert program_of(text, msgspec.structs.replace(grader, target="x.py")) == "x = 1\n"


@pytest.mark.parametrize(
    ("text", "grader", "wrong"),
    [
        ("So:\n 4 \n", ExactGrader(answer="4"), None),
        ("4\nor 5", ExactGrader(answer="4"), "not the answer: 'or 5'"),
        ("", ExactGrader(answer="4"), "not the answer: ''"),
        ("x = 4, y = 5", ExactGrader(answer="5", pattern=r"y = (\d+)"), None),
        ("x = 4", ExactGrader(answer="5", pattern=r"y = (\d+)"), "no answer in the form"),
        ("the answer is yes.", ExactGrader(answer="yes", pattern="yes|no"), None),
    ],
)
def test_exact_answers_are_compared_here(text: str, grader: ExactGrader, wrong: str | None) -> None:
    verdict = verdict_on(answered(text, grader))
    assert verdict.kind == (VerdictKind.ACCEPTED if wrong is None else VerdictKind.WRONG_ANSWER)
    assert [test.kind for test in verdict.tests] == [verdict.kind]
    assert (wrong or "") in verdict.tests[0].detail
    assert bool(verdict.tests[0].detail) == (wrong is not None)


def test_a_broken_pattern_is_a_fault_and_no_grade() -> None:
    verdict = verdict_on(answered("4", ExactGrader(answer="4", pattern="(")))
    assert verdict.kind is None
    assert "regular expression" in (verdict.fault or "")


def test_what_could_not_be_sampled_goes_down_the_path() -> None:
    verdict = verdict_on(answered("", FUNCTION, unscorable=Unscorable(UnscorableReason.TOO_LONG)))
    assert (verdict.fault, verdict.kind, verdict.tests) == ("too_long", None, ())
    assert verdict.unscorable == Unscorable(UnscorableReason.TOO_LONG)


def test_the_context_counts_sampled_tokens_and_the_oldest_version() -> None:
    spans = (
        TokenSpan(token_ids=bytes(8)),
        TokenSpan(token_ids=bytes(12), policy_version=PolicyVersion(1, 5)),
        TokenSpan(token_ids=bytes(4), policy_version=PolicyVersion(1, 4)),
    )
    context = context_of(answered("4", FUNCTION, spans=spans))
    assert (context.completion_tokens, context.policy_version) == (4, PolicyVersion(1, 4))


def test_an_answer_that_a_user_brought_gets_a_digest() -> None:
    answer = answered("4", FUNCTION, digest="", spans=(), purpose=Purpose.SCORE)
    event = dispatch(answer).event
    assert isinstance(event, Execution)
    assert (event.purpose, event.context.digest) == (Purpose.SCORE, rollout_digest((), "4"))


@pytest.mark.parametrize(
    ("text", "components"),
    [
        ("```py\nx\n```", (1.0, 0.0)),
        ("```py\nx\n", (0.0, 0.0)),
        ("```\nx\n```\n```\ny\n```", (0.0, 0.0)),
        ("a b c d " * 3, (0.0, 1 - 4 / 9)),
        ("", (0.0, 0.0)),
    ],
)
def test_text_components(text: str, components: tuple[float, float]) -> None:
    assert tuple(text_components(text).values()) == pytest.approx(components)


async def test_the_hop_sends_a_given_up_rollout_on_as_unscorable() -> None:
    hop, answer = Dispatch(), answered(ANSWER, FUNCTION)
    assert await hop.handle(answer, record("rollouts", 0)) == [dispatch(answer)]
    for (out,) in (hop.poisoned(answer, record("rollouts", 0)), hop.exhausted(answer, record("rollouts", 0), "why")):
        assert isinstance(out.event, Verdict)
        assert out.event.unscorable in (Unscorable(UnscorableReason.POISONED), fault("why"))
