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
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_MAX_CHARACTERS = 10_000
"""Of what is read as a number, a choice, or the content of a box."""
_MAX_BOXES = 20


def said(text: str, grader: ExactGrader) -> str | None:
    """Return what the answer says: the last line, or what the pattern finds; None where it finds nothing.

    Only what stands after the last `</think>` counts. Without a pattern, `math` takes the last `\boxed`, if there is
    one, and `choice` what stands behind “answer is”. ValueError for a pattern that is none; PatternTimeout.
    """
    text = without_thought(text)
    if text.rstrip().endswith((">", "]")):
        text = END_TOKEN.sub("", text)
    if grader.pattern is not None:
        found = (find_first if grader.match == "first" else find_last)(grader.pattern, text)
        return None if found is None else found.strip()
    if grader.compare == "math" and (content := boxed(text)) is not None:
        return content.strip()
    if grader.compare == "choice":
        says = list(_SAYS.finditer(text[-_MAX_CHARACTERS:]))
        if says:
            return says[-1][1]
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def boxed(text: str) -> str | None:
    """Return what stands in the last `\\boxed{…}` whose brackets close; None where there is none."""
    starts = [found.end() for found in _BOX.finditer(text)]
    for start in reversed(starts[-_MAX_BOXES:]):
        depth = 1
        for brace in _BRACE.finditer(text, start, start + _MAX_CHARACTERS):
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
