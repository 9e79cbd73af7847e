"""`exact`: the answer's text against the task's. Pure; patterns run within a time limit."""

import re

from sandbox.comparing.numbers import TOLERANCE
from sandbox.comparing.written import MAX_CHARACTERS, choice, number, refuses, said_choice
from sandbox.extraction.extract import without_thought
from sandbox.extraction.fences import END_TOKEN
from sandbox.extraction.patterns import PatternTimeout, find_first, find_last
from sandbox.reward_rule import shorten
from schemas import ExactGrader

_FORMULA = re.compile(r"\$([^$]+)\$|\\\((.+?)\\\)")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_MAX_BOXES = 20


def said(text: str, grader: ExactGrader) -> str | None:
    """Return what the answer says: the last line, or what the pattern finds; None where it finds nothing.

    Only what stands after the last `</think>` counts. Without a pattern, the last `\boxed` counts where it is not text
    that is compared, and for `choice` the letter that is called the answer. ValueError for a pattern that is none;
    PatternTimeout.
    """
    text = without_thought(text)
    if text.rstrip().endswith((">", "]")):
        text = END_TOKEN.sub("", text)
    if grader.pattern is not None:
        found = (find_first if grader.match == "first" else find_last)(grader.pattern, text)
        return None if found is None else found.strip()
    if grader.compare != "text" and (content := boxed(text)) is not None:
        return content.strip()
    if grader.compare == "choice" and (letter := said_choice(text)) is not None:
        return letter
    lines = text.strip().splitlines()
    line = lines[-1].strip() if lines else ""
    formulas = _FORMULA.findall(line) if grader.compare == "math" and not refuses(line) else []
    return max(formulas[0]).strip() if len(formulas) == 1 else line


def boxed(text: str) -> str | None:
    """Return what stands in the last `\\boxed{…}` whose brackets close; None where there is none."""
    starts = [found.end() for found in _BOX.finditer(text)]
    for start in reversed(starts[-_MAX_BOXES:]):
        depth = 1
        for brace in _BRACE.finditer(text, start, start + MAX_CHARACTERS):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if depth == 0:
                return text[start : brace.start()]
    return None


def wrong(text: str, grader: ExactGrader) -> str | None:
    """Say what is wrong with an answer; None where it is right. ValueError for a pattern that is none."""
    try:
        found = said(text, grader)
    except PatternTimeout as error:
        return f"no answer in the form that was asked for: {error}"
    if found is None:
        return "no answer in the form that was asked for"
    if any(_same(found, answer.strip(), grader) for answer in (grader.answer, *grader.or_answers)):
        return None
    return f"this is not the answer: {shorten(found, 300)!r}"


def is_right(text: str, grader: ExactGrader) -> bool:
    """Whether the characters alone say that an answer is right."""
    try:
        return wrong(text, grader) is None
    except ValueError:
        return True  # no pattern at all: that is said where it is compared


def _same(found: str, answer: str, grader: ExactGrader) -> bool:
    if found == answer:
        return True
    if grader.compare == "number":
        return _same_number(found, answer, grader.tolerance)
    if grader.compare == "choice":
        return choice(found) is not None and choice(found) == choice(answer)
    return False


def _same_number(found: str, answer: str, tolerance: float | None) -> bool:
    ours, theirs = number(found), number(answer)
    if ours is None or theirs is None:
        return False
    if tolerance is None and ours.denominator == theirs.denominator == 1:
        return ours == theirs
    return abs(ours - theirs) <= (TOLERANCE if tolerance is None else tolerance) * max(1, abs(theirs))
