"""A factor, or what stands under a root, is no number that an answer gives."""

import pytest

from sandbox.comparing.written import number


@pytest.mark.parametrize(
    "text", [r"2\pi", r"6\sqrt{49}", r"2 \cdot 3", r"3 \times 10", r"\pi 2", r"the answer is 2\pi"]
)
def test_a_formula_is_no_number(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize(
    ("text", "value"), [(r"4\text{ cm}", 4), (r"it is 5 \mathrm{m}", 5), (r"\theta = 5", 5), (r"\$7", 7)]
)
def test_a_unit_and_what_is_solved_for_are_none_of_it(text: str, value: int) -> None:
    assert number(text) == value
