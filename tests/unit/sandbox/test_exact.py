"""`exact`: what an answer says, against what the task expects."""

import time

import pytest

from sandbox.comparing.exact import wrong
from sandbox.extraction.patterns import LIMIT_SECONDS, PatternTimeout, find_first, find_last
from schemas import ExactGrader

BOXED = r"\\boxed\{([^{}]*)\}"
NESTED = r"\\boxed\{((?:[^{}]+|\{[^{}]*\})*)\}"


@pytest.mark.parametrize(
    ("text", "grader", "right"),
    [
        # which match, and what counts as said
        ("<think>\\boxed{41}?</think>\\boxed{42}", ExactGrader(answer="42", pattern=BOXED), True),
        ("<think>\\boxed{42}!</think>\\boxed{41}", ExactGrader(answer="42", pattern=BOXED), False),
        ("<think>\\boxed{42}", ExactGrader(answer="42", pattern=BOXED), False),
        ("First \\boxed{41}, no: \\boxed{42}.", ExactGrader(answer="42", pattern=BOXED), True),
        ("First \\boxed{41}, no: \\boxed{42}.", ExactGrader(answer="41", pattern=BOXED, match="first"), True),
        ("#### 41\n#### 42", ExactGrader(answer="42", pattern=r"#### (-?\d+)"), True),
        ("yes", ExactGrader(answer="yes", pattern="(no)|(yes)"), True),
        ("<think>hm</think>\n4", ExactGrader(answer="4"), True),
        ("4<|im_end|>", ExactGrader(answer="4"), True),
        ("a < b>", ExactGrader(answer="a < b>"), True),
        # one of several
        ("NYC", ExactGrader(answer="New York", or_answers=("NYC", "New York City")), True),
        ("LA", ExactGrader(answer="New York", or_answers=("NYC",)), False),
        # numbers
        ("1,000", ExactGrader(answer="1000", compare="number"), True),
        ("$1,234.50", ExactGrader(answer="1234.5", compare="number"), True),
        ("3/4", ExactGrader(answer="0.75", compare="number"), True),
        ("\\frac{3}{4}", ExactGrader(answer="0.75", compare="number"), True),
        ("-\\frac{3}{4}", ExactGrader(answer="-0.75", compare="number"), True),
        ("50%", ExactGrader(answer="0.5", compare="number"), True),
        ("1e-3", ExactGrader(answer="0.001", compare="number"), True),
        ("42.", ExactGrader(answer="42", compare="number"), True),
        ("\u22125", ExactGrader(answer="-5", compare="number"), True),
        ("3.14", ExactGrader(answer="3.14159", compare="number", tolerance=0.01), True),
        ("3.14", ExactGrader(answer="3.14159", compare="number"), False),
        ("1000001", ExactGrader(answer="1000000", compare="number", tolerance=0.0), False),
        ("10**3", ExactGrader(answer="1000", compare="number"), False),
        ("1,00", ExactGrader(answer="100", compare="number"), False),
        ("1/0", ExactGrader(answer="0", compare="number"), False),
        ("1e999999999", ExactGrader(answer="1", compare="number"), False),
        ("1 1/2", ExactGrader(answer="1.5", compare="number"), True),
        ("1\\frac{1}{2}", ExactGrader(answer="1.5", compare="number"), True),
        ("\\frac34", ExactGrader(answer="3/4", compare="number"), True),
        ("\\frac{-3}{4}", ExactGrader(answer="-0.75", compare="number"), True),
        ("- 5", ExactGrader(answer="-5", compare="number"), True),
        ("12 345", ExactGrader(answer="12345", compare="number"), True),
        ("12{,}345", ExactGrader(answer="12345", compare="number"), True),
        ("$5", ExactGrader(answer="5", compare="number"), True),
        ("-$5", ExactGrader(answer="-5", compare="number"), True),
        ("So the answer is $\\boxed{42}$.", ExactGrader(answer="42", compare="number"), True),
        ("The answer is 42.", ExactGrader(answer="42", compare="number"), True),
        ("6 * 7 = 42 apples", ExactGrader(answer="42", compare="number"), True),
        ("There are 1,042 apples.", ExactGrader(answer="1042", compare="number"), True),
        ("He pays $12.50 per day.", ExactGrader(answer="12.5", compare="number"), True),
        ("The answer is -3.", ExactGrader(answer="-3", compare="number"), True),
        # no number, or another one
        ("1 1/2", ExactGrader(answer="5.5", compare="number"), False),
        ("3 4", ExactGrader(answer="34", compare="number"), False),
        ("1000001", ExactGrader(answer="1000000", compare="number"), False),
        ("12345679", ExactGrader(answer="12345678.0", compare="number"), False),
        ("It is not 42.", ExactGrader(answer="42", compare="number"), False),
        ("41 or 42", ExactGrader(answer="42", compare="number"), False),
        ("between 41 and 42", ExactGrader(answer="42", compare="number"), False),
        ("x = 3y", ExactGrader(answer="3", compare="number"), False),
        ("10^2", ExactGrader(answer="10", compare="number"), False),
        ("5-3", ExactGrader(answer="5", compare="number"), False),
        ("3/4/5", ExactGrader(answer="0.75", compare="number"), False),
        ("1.2.3", ExactGrader(answer="1.2", compare="number"), False),
        ("2 \\times 21", ExactGrader(answer="21", compare="number"), False),
        # choices
        ("B", ExactGrader(answer="B", compare="choice"), True),
        ("The answer is (b).", ExactGrader(answer="B", compare="choice"), True),
        ("**B**", ExactGrader(answer="B", compare="choice"), True),
        ("B. Paris", ExactGrader(answer="B", compare="choice"), True),
        ("Not A, so\nAnswer: C", ExactGrader(answer="C", compare="choice"), True),
        ("\\boxed{(D)}", ExactGrader(answer="D", pattern=BOXED, compare="choice"), True),
        ("\\boxed{B}", ExactGrader(answer="B", compare="choice"), True),
        ("So $\\boxed{\\text{(B)}}$.", ExactGrader(answer="B", compare="choice"), True),
        ("I think it's B", ExactGrader(answer="B", compare="choice"), True),
        ("It must be A.", ExactGrader(answer="A", compare="choice"), True),
        ("(a) 12", ExactGrader(answer="A", compare="choice"), True),
        ("Option B is correct, as C is too small.", ExactGrader(answer="B", compare="choice"), True),
        ("The correct answer is B because A is too small.", ExactGrader(answer="B", compare="choice"), True),
        ("Answer: C\nOption A is wrong.", ExactGrader(answer="C", compare="choice"), True),
        ("**Answer: D**", ExactGrader(answer="D", compare="choice"), True),
        ("Answer: **D**", ExactGrader(answer="D", compare="choice"), True),
        # no choice, or another one
        ("Answer: C\nOption A is wrong.", ExactGrader(answer="A", compare="choice"), False),
        ("The answer is a triangle.", ExactGrader(answer="A", compare="choice"), False),
        ("A cat has four legs.", ExactGrader(answer="A", compare="choice"), False),
        ("It is a dog.", ExactGrader(answer="A", compare="choice"), False),
        ("I do not know", ExactGrader(answer="I", compare="choice"), False),
        ("The answer is C or D.", ExactGrader(answer="C", compare="choice"), False),
        ("The answer is not A.", ExactGrader(answer="A", compare="choice"), False),
        ("A, B, C and D", ExactGrader(answer="D", compare="choice"), False),
        ("A or B", ExactGrader(answer="B", compare="choice"), False),
        ("C", ExactGrader(answer="B", compare="choice"), False),
        ("", ExactGrader(answer="B", compare="choice"), False),
    ],
)
def test_answers(text: str, grader: ExactGrader, right: bool) -> None:
    assert (wrong(text, grader) is None) is right


HANGING = [
    # what never closes its bracket, and what is right behind it
    ("Hence \\boxed{the value that was asked for is forty-two and nothing else, as was to be shown", NESTED, None),
    ("so \\boxed{" + "a" * 40 + " and then \\boxed{42}", NESTED, "42"),
    ("a" * 40 + "!", r"^(a+)+$", None),
    ("x" * 60, r"^(x|xx)+y$", None),
    ("1" * 60 + "z", r"(\d*)*a", None),
]


@pytest.mark.parametrize(("text", "pattern", "found"), HANGING)
def test_a_pattern_that_would_never_end_ends(text: str, pattern: str, found: str | None) -> None:
    started = time.monotonic()
    assert find_last(pattern, text) == found
    assert time.monotonic() - started < 4 * LIMIT_SECONDS


def test_one_that_neither_engine_ends_has_found_nothing() -> None:
    pattern, text = r"^(a|aa)+(?!a)b$", "a" * 60 + "!"
    with pytest.raises(PatternTimeout, match="takes more than"):
        find_last(pattern, text)
    assert "takes more than" in (wrong(text, ExactGrader(answer="a", pattern=pattern)) or "")


def test_what_is_no_pattern_is_a_fault_of_the_task() -> None:
    with pytest.raises(ValueError, match="no regular expression"):
        find_first("(", "text")
