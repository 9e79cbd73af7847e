"""Numbers and choices as people write them in an answer. Pure, and linear in the text."""

import re
from fractions import Fraction

MAX_CHARACTERS = 10_000
"""Of what is read as a number or a choice."""
_DIGITS = r"(?:\d+(?:\.\d*)?|\.\d+)"
_VALUE = rf"(?:(\d+) +(?=\d+/))?({_DIGITS})(?:[eE]([+-]?\d{{1,3}})(?![\d.]))?(?:/({_DIGITS}))?(%?)"
_NUMBER = re.compile(rf"([+-]?){_VALUE}")
_WITHIN = re.compile(
    rf"(?<![\w.^/\\{{(])[+-]?\$?(?:\d+ +(?=\d+/))?{_DIGITS}(?:[eE][+-]?\d{{1,3}})?(?:/{_DIGITS})?%?(?![\w^(/]|\.\d)"
)
_FRACTION = re.compile(r"([+-]?)\\[dt]?frac\s*(?:\{\s*([+-]?)(\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))")
_THOUSANDS = re.compile(r"(?<=\d)(?:,|\{,\}|\\,|[\u00a0\u2009\u202f])(?=\d{3}(?!\d))")
_SPACED = re.compile(r"[+-]?\d{1,3}(?: \d{3})+")
# with such a command a number is a part of something, as in 2\pi or 6\sqrt{49}; a unit is none
_FORMULA = re.compile(r"\\(?!text|math|mbox|quad|degree|boxed|left|right)[A-Za-z]")
_LEADS_TO = re.compile(r"=|\u2248|\b(?:is|are|equals)\b")
_NOT = re.compile(r"\b(?:not|never)\b|n't\b", re.IGNORECASE)

_ALONE = re.compile(r"[(\[]?([A-Za-z])[)\].:]?")
_LEADS = re.compile(r"[(\[*]*([A-Za-z])[*]*[)\].:][*]*\s+\S")
_MARKED = re.compile(r"[(\[]([A-Za-z])[)\]]|\*\*([A-Za-z])\*\*")
_CAPITAL = re.compile(r"(?<![\w'’.])(?:A(?! +(?!or\b|and\b)[a-z])|[B-HJ-Z]|I(?=\W*$))(?![\w'’])")
_AFTER = r"(?![\w'’])(?!\s*(?:or|and|/|,|&)\s*[(\[]?[A-Za-z]\b)"
_SAYS = re.compile(
    r"\b(?:answer|choice|option)(?:\s+(?:is|would be|must be|should be)|\s*[:=])(?:\s+(?:option|choice|letter))?"
    rf"[\s:*$({{\[\"'`]*([B-HJ-Zb-hj-z]{_AFTER}|[AaIi]{_AFTER}(?=[^\w\s]|\s*$|\s+(?:because|since)\b))",
    re.IGNORECASE,
)
_IS_IT = re.compile(r"\b([A-Za-z])[)\]*]*\s+is\s+(?:the\s+)?(?:correct|right|answer|best)\b")
_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s*\{\s*\(?([A-Za-z])\)?\s*\}")


def number(text: str) -> Fraction | None:
    """Read a number as people write one: `$1,234.50`, `3/4`, `1 1/2`, `\\frac{3}{4}`, `1e-3`, `50%`.

    Of a sentence: the one number in it, or behind its last `=` or “is”. None for anything else, and for “not 4”.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    plain = _plainly(text)
    if (value := _value(plain)) is not None or refuses(plain):
        return value
    tail = plain[[0, *(found.end() for found in _LEADS_TO.finditer(plain))][-1] :]
    for part in (tail, plain):
        within = _WITHIN.findall(part)
        if within:
            alone = len(within) == 1 and not _FORMULA.search(part)
            return _value(within[0].replace("$", "")) if alone else None
    return None


def refuses(text: str) -> bool:
    """Whether a sentence says what something is not."""
    return _NOT.search(text) is not None


def _plainly(text: str) -> str:
    plain = _FRACTION.sub(_as_fraction, text.replace("\\$", "").replace("\\%", "%").replace("\\!", ""))
    plain = _THOUSANDS.sub("", plain).replace("\u2212", "-").strip(" $*.\n\t")
    plain = re.sub(r"(?<=^[+-]) +| +(?=[/%])|(?<=/) +", "", plain)
    return plain.replace(" ", "") if _SPACED.fullmatch(plain) else plain


def _as_fraction(found: re.Match[str]) -> str:
    sign, inner, above, short_above, below, short_below = found.groups()
    minus = "-" if (sign == "-") != (inner == "-") else ""
    before = " " if not minus and found.start() and found.string[found.start() - 1].isdigit() else ""
    return f"{before}{minus}{above or short_above}/{below or short_below}"


def _value(plain: str) -> Fraction | None:
    found = _NUMBER.fullmatch(plain.replace("$", "").strip())
    if found is None:
        return None
    sign, whole, above, power, below, percent = found.groups()
    try:
        value = Fraction(above) * Fraction(10) ** int(power or 0) / Fraction(below or 1) + int(whole or 0)
    except (ZeroDivisionError, ValueError):
        return None
    return (-value if sign == "-" else value) / (100 if percent else 1)


def said_choice(text: str) -> str | None:
    """Return the letter that an answer calls its choice: behind “answer is”, before “is right”; None where none is."""
    text = _TEXT.sub(r"\1", text[-MAX_CHARACTERS:])
    found = [*_SAYS.finditer(text), *_IS_IT.finditer(text)]
    return max(found, key=re.Match.start)[1].upper() if found else None


def choice(text: str) -> str | None:
    """Read a choice: the letter that stands alone, as `B`, `(b)`, `B. Paris`, `**B**`; None where none or two do."""
    plain = _TEXT.sub(r"\1", text[:MAX_CHARACTERS]).strip(" \t\n$*_`\"'")
    for form in (_ALONE.fullmatch(plain.rstrip("., ")), _LEADS.match(plain)):
        if form is not None:
            return form[1].upper()
    if refuses(plain):
        return None
    marked = {(one or other).upper() for one, other in _MARKED.findall(text[:MAX_CHARACTERS])}
    letters = marked or set(_CAPITAL.findall(plain))
    return letters.pop() if len(letters) == 1 else None
