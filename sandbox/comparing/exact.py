"""`exact`: the answer's text against the task's. Pure; patterns run within a time limit."""

import re
from fractions import Fraction

from sandbox.comparing.numbers import TOLERANCE
from sandbox.extraction.extract import without_thought
from sandbox.extraction.fences import END_TOKEN
from sandbox.extraction.patterns import PatternTimeout, find_first, find_last
from sandbox.reward_rule import shorten
from schemas import ExactGrader

_NUMBER = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,3}))?(?:/(\d+(?:\.\d*)?|\.\d+))?(%?)")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}")
_CHOICE = re.compile(r"(?<![A-Za-z])\(?\[?\*{0,2}\b([A-Za-z])\b\*{0,2}\]?\)?(?=[\s).:,;\]*]|$)")
_SAYS = re.compile(r"(?:answer|choice|option)\b[^A-Za-z\n]*(?:is|:)?[^A-Za-z\n]*\b([A-Za-z])\b", re.IGNORECASE)
_MAX_CHARACTERS = 10_000
"""Of what is read as a number or a choice."""


def exact_answer(text: str, grader: ExactGrader) -> str | None:
    """Return what the answer says: the last line, or what the pattern finds; None where it finds nothing.

    Only what stands after the last `</think>` counts. ValueError for a pattern that is none; PatternTimeout.
    """
    said = END_TOKEN.sub("", without_thought(text)) if text.rstrip().endswith((">", "]")) else without_thought(text)
    if grader.pattern is not None:
        found = (find_first if grader.match == "first" else find_last)(grader.pattern, said)
        return None if found is None else found.strip()
    if grader.compare == "choice":
        says = list(_SAYS.finditer(said[-_MAX_CHARACTERS:]))
        if says:
            return says[-1][1]
    lines = said.strip().splitlines()
    return lines[-1].strip() if lines else ""


def wrong(text: str, grader: ExactGrader) -> str | None:
    """Say what is wrong with an answer; None where it is right. ValueError for a pattern that is none."""
    try:
        found = exact_answer(text, grader)
    except PatternTimeout as error:
        return f"no answer in the form that was asked for: {error}"
    if found is None:
        return "no answer in the form that was asked for"
    if any(_same(found, answer.strip(), grader) for answer in (grader.answer, *grader.or_answers)):
        return None
    return f"this is not the answer: {shorten(found, 300)!r}"


def _same(found: str, answer: str, grader: ExactGrader) -> bool:
    if found == answer:
        return True
    if grader.compare == "number":
        return _same_number(found, answer, TOLERANCE if grader.tolerance is None else grader.tolerance)
    if grader.compare == "choice":
        return choice(found) is not None and choice(found) == choice(answer)
    return False


def _same_number(found: str, answer: str, tolerance: float) -> bool:
    ours, theirs = number(found), number(answer)
    return ours is not None and theirs is not None and abs(ours - theirs) <= tolerance * max(1, abs(theirs))


def number(text: str) -> Fraction | None:
    """Read a number as people write one: `$1,234.50`, `3/4`, `\\frac{3}{4}`, `1e-3`, `50%`; None for anything else."""
    if len(text) > _MAX_CHARACTERS:
        return None
    plain = _FRACTION.sub(r"\1/\2", text.replace("\\$", "").replace("\\%", "%").replace("\\!", ""))
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", plain.strip(" $*.\n")).replace("\u2212", "-").replace(" ", "")
    found = _NUMBER.fullmatch(plain)
    if found is None:
        return None
    sign, whole, power, below, percent = found.groups()
    try:
        value = Fraction(whole) * Fraction(10) ** int(power or 0) / Fraction(below or 1)
    except (ZeroDivisionError, ValueError):
        return None
    return (-value if sign == "-" else value) / (100 if percent else 1)


def choice(text: str) -> str | None:
    """Read a choice: the one letter that stands alone, as `B`, `(b)`, `B.`, `**B**`; None where none or two do."""
    letters = {letter.upper() for letter in _CHOICE.findall(text[:_MAX_CHARACTERS])}
    return letters.pop() if len(letters) == 1 else None
