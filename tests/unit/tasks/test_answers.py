r"""The answer of a data set's column as a grader: what a reader takes for the answer, in column and text."""

import random
from typing import Any

import pytest

from sandbox.comparing.exact import wrong
from tasks.files.answer import answer_grader

LONG = "word " * 20_000


@pytest.mark.parametrize(
    ("column", "said", "right"),
    [
        # GSM8K: a worked solution, its end marked
        ("She has 3 + 4 = <<3+4=7>>7.\n#### 7", "So 7.\n#### 7", True),
        ("#### 1,234", "#### 1234", True),
        ("#### -3", "#### 3", False),
        ("#### 7", "#### 70", False),
        ("#### 7", "### 1. Count\n#### Step 2: add\nso it is 7\n#### 7\n\nI hope this helps!", True),
        ("7", "The answer may be 7, or it may be 8.", False),
        # MATH, TRL: a solution with a box
        (r"Thus $x = \boxed{\frac{1}{2}}$.", r"\boxed{\frac{1}{2}}", True),
        (r"Thus $x = \boxed{\frac{1}{2}}$.", r"\boxed{0.5}, as was asked.", True),
        (r"\boxed{4}", "<think>\\boxed{5}</think>\n<answer>\\boxed{4}</answer>", True),
        (r"\boxed{4}", "<think>\\boxed{4}</think>\n<answer>5</answer>", False),
        (r"\boxed{4}", r"First \boxed{4}. No: \boxed{5}.", False),
        (r"\boxed{4}", r"It is \boxed{4", False),
        # DAPO's words
        ("34", "Work.\n\nAnswer: 34", True),
        ("34", "Work.\n\n**Answer:** $34$", True),
        ("34", "Final answer: 35\n34 was wrong", False),
        ("34", r"Answer: \boxed{34}", True),
        ("34", r"Answer: $\boxed{34}$.", True),
        # no mark: the last line
        ("Paris", "Paris", True),
        ("Paris", "I think of Lyon.\n\nParis \n\n", True),
        ("Paris", "Paris\nor Lyon", False),
        ("Paris", "<answer>\nParis\n</answer> Good night.", True),
        ("Paris", "", False),
        (4, "4.0", True),
        (0.5, "1/2", True),
        # choices and several answers
        ("B", "(b)", True),
        ("B", r"\boxed{B. Berlin}", True),
        ("B", r"\boxed{C}", False),
        (["New York", "NYC"], "NYC", True),
        (["New York", "NYC"], "LA", False),
        # long texts within the limit of a pattern
        ("Paris", LONG + "\nParis", True),
        ("Paris", LONG + "Paris", False),
        ("4", LONG + r"\boxed{4}" + LONG, True),
        ("4", "\n" * 50_000 + "4" + "\n" * 50_000, True),
    ],
)
def test_what_a_reader_takes_for_the_answer_is_judged(column: Any, said: str, right: bool) -> None:
    assert (wrong(said, answer_grader(column)) is None) is right


@pytest.mark.parametrize(
    ("column", "answer", "compare"),
    [
        ("It follows.\n#### 1,000", "1,000", "number"),
        (r"so \boxed{x^{2} + \sqrt{2}}", r"x^{2} + \sqrt{2}", "math"),
        (r"\boxed{\frac{3}{4}}", r"\frac{3}{4}", "number"),
        ("C", "C", "choice"),
        *(
            (text, text, "number")
            for text in ("-3", "+3", ".5", "5.", "1,234.50", "3/4", "$5", "$-5$", "50%", "1e-3", "−2")
        ),
        *((text, text, "text") for text in ("5 apples", "7 or 8", "2x", "1,23", "(1, 2)", "1.2.3", "Room 7", "3 / x")),
        *(
            (text, text, "math")
            for text in (r"2\pi", r"6\sqrt{49}", r"\frac{1}{2}x", r"90^\circ", r"$x = \frac{1}{2}$")
        ),
        ("Charles Babbage", "Charles Babbage", "text"),
        (12345678901234567890123, "12345678901234567890123", "number"),
    ],
)
def test_how_an_answer_is_compared(column: Any, answer: str, compare: str) -> None:
    grader = answer_grader(column)
    assert (grader.answer, grader.compare) == (answer, compare)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (True, "neither a text nor a number"),
        ({"target": "x"}, "neither a text nor a number"),
        ('{"inputs": ["1"], "outputs": ["2"]}', "JSON of its own form"),
        ("First this.\nThen that.", "several lines, and the answer is not marked"),
        ("", "there is no answer in it"),
        (r"\boxed{}", "there is no answer in it"),
        ([], "there is no answer in the list"),
    ],
)
def test_what_nobody_can_compare_is_refused(column: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        answer_grader(column)


def test_a_right_answer_in_any_mark_is_right_and_another_number_is_not() -> None:
    chance = random.Random(5)
    marks = ("{}", "\\boxed{{{}}}", "#### {}", "<answer> {} </answer>", "Answer: {}", "**Final answer:** {}")
    for _ in range(300):
        value = chance.choice((chance.randint(-9999, 9999), round(chance.uniform(-9, 9), 3)))
        column, said = (f"Words, 17 of them.\n{chance.choice(marks[1:]).format(value)}", chance.choice(marks))
        grader = answer_grader(column)
        assert wrong(f"Words: 3.\n{said.format(value)}\n", grader) is None, (column, said)
        assert wrong(f"Words: {value}.\n{said.format(value + 1)}\n", grader) is not None, (column, said)
