r"""A grader of a right answer that a data set has in a column.

The right answer and the model's are looked for alike: what is marked last by `\boxed{…}`, `#### 4`,
`<answer>…</answer>` or `Answer: …`, which is what prompts of public sets ask for; where nothing is marked, the last
line. A number is compared as a number, one letter from A to J as a choice, what has TeX in it by math-verify, all else
character by character.
"""

import json
import re
from typing import Any, Literal

from sandbox.extraction.patterns import find_last
from schemas import ExactGrader

_BOXED = r"\\boxed\s*\{((?:[^{}]|\{(?1)\})*)\}"
_HASHES = r"####[ \t]*\$?([-+]?\d[\d.,/]*)"
_TAGS = r"<answer>\s*(?s:((?:(?!</?answer>|\\boxed).)*?))\s*</answer>"  # of a box in it, what is in the box
_WORD = r"(?im:^[*_ \t]*(?:final[ \t]+)?answer[*_ \t]*:[*_ \t]*((?:(?!\\boxed)[^\n])*(?!\\boxed)[^\s*_]))"
_ANY_MARK = r"\\boxed\s*\{|####[ \t]*\$?[-+]?\d|<answer>|(?im:^[*_ \t]*(?:final[ \t]+)?answer[*_ \t]*:)"
_LAST_LINE = rf"\A(?!(?s:.*?)(?:{_ANY_MARK}))(?s:.*\n)?[ \t]*([^\n]*\S)\s*\Z"
_NUMBER = re.compile(
    r"\$?[-+\u2212]?\\?\$?(?:\d+|\d{1,3}(?:,\d{3})+)?(?:(?<=\d)\.?|\.\d+)(?:[eE][-+]?\d+)?(?:/\d+)?\\?%?\$?|"
    r"\$?[-+\u2212]?\\[dt]?frac\s*\{\d+\}\s*\{\d+\}\$?"
)
"""Nothing but a number: `1,234.50`, `-3/4`, `\\frac{3}{4}`, `50%`, `$5`."""
FINAL_ANSWER = "|".join((_BOXED, _HASHES, _TAGS, _WORD, _LAST_LINE))
IN_WORDS = r"the last of \boxed{…}, #### …, <answer>…</answer> and Answer: …, or where none is, the last line"


def answer_grader(answer: Any) -> ExactGrader:
    """The grader of an answer, or of several that are right. Raises ValueError for what cannot be compared as text."""
    answers = [_final(one) for one in (answer if isinstance(answer, list) else [answer])]
    if not answers:
        raise ValueError("there is no answer in the list")
    first, *others = answers
    return ExactGrader(answer=first, or_answers=tuple(others), pattern=FINAL_ANSWER, compare=_comparison(answers))


def _comparison(answers: list[str]) -> Literal["text", "number", "choice", "math"]:
    if all(_NUMBER.fullmatch(one) for one in answers):
        return "number"
    if all(re.fullmatch("[A-J]", one) for one in answers):
        return "choice"
    return "math" if any("\\" in one for one in answers) else "text"


def _final(answer: Any) -> str:
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        raise ValueError("neither a text nor a number: map `grader`, as a table, in place of `answer`")
    text = str(answer).strip()
    if _is_json_object(text):
        raise ValueError("JSON of its own form is no answer to compare: map `grader` in place of `answer`")
    marked = re.search(_ANY_MARK, text) is not None
    if "\n" in text and not marked:
        raise ValueError(
            r"several lines, and the answer is not marked in them (\boxed{…}, #### …, <answer>…</answer>, Answer: …): "
            "map `grader` in place of `answer`"
        )
    found = find_last(FINAL_ANSWER, text) if marked else text
    if not found:
        raise ValueError("there is no answer in it")
    return found.strip()


def _is_json_object(text: str) -> bool:
    """Whether it is what verl's sets of programs have: an object, or a list of some."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict) for one in value))
