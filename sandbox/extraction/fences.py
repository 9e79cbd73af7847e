"""Blocks between fences in a model's answer, as models write them. Pure, and linear in the text.

Markdown's rules (CommonMark 4.5), and what a person reads besides: marks with text, tags or an end token beside
them, a fence that the prompt had opened, fences in the strings of a program.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

_FENCE = re.compile(r"(?P<before>.*?)(?P<mark>`{3,}|~{3,})(?P<info>.*)")
_PREFIX = re.compile(r"(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)]))*[ \t]*")
"""What stands before a fence by Markdown's own rules: blanks, a quote's mark, a list's."""
_QUOTE = re.compile(r"[ \t]*>[ \t]?")
_NAME = re.compile(r"[ \t]*\{?\.?([A-Za-z][\w+#-]*)")
_COMMENT = ("#", "//", "*", "--", "%", ";")
END_TOKEN = re.compile(r"<\|\w+\|>|<｜[^｜\n]{1,40}｜>|</s>|<end_of_turn>|<eos>|\[/INST\]")
TAG = re.compile(r"</?[A-Za-z][\w-]*>|\[/?(?:PYTHON|ANSWER)\]")
_STRING = re.compile(r"#[^\n]*|\"\"\"|'''|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?", re.DOTALL)
_MARKDOWN = frozenset({"markdown", "md"})
_SHORTEST = 3
_CLOSING_INDENT = 4
"""A mark that stands this much further in than the block's own is part of the content."""


@dataclass
class Block:
    """One block. `name`: the first word after its fence, lower-case; "" where there is none."""

    name: str
    mark: str
    indent: int = 0
    quoted: bool = False
    lines: list[str] = field(default_factory=list[str])
    closed: bool = False

    @property
    def body(self) -> str:
        """The content, without the indentation that the fence itself has."""
        lines = [_QUOTE.sub("", line, count=1) for line in self.lines] if self.quoted else self.lines
        return "".join(_moved_out(lines) if self.indent or self.quoted else lines)


@dataclass(frozen=True)
class Fenced:
    """An answer, read."""

    blocks: list[Block]
    before: str
    """What stands ahead of the first fence."""
    prefilled: bool
    """The first fence closes one that the prompt had opened: `before` is its content."""
    after: str
    """What stands behind the last block, where that is closed."""


@dataclass(frozen=True)
class _Mark:
    """A line with a fence's mark."""

    before: str
    mark: str
    info: str

    @property
    def name(self) -> str:
        found = _NAME.match(self.info)
        return found[1].lower() if found else ""

    @property
    def bare(self) -> bool:
        """Nothing, or nothing but an end token or a tag, follows the mark."""
        return not TAG.sub("", END_TOKEN.sub("", self.info)).strip()

    @property
    def alone(self) -> bool:
        """Nothing but blanks, or a quote's mark, precedes it."""
        return not self.before.replace(">", "").strip()

    @property
    def indent(self) -> int:
        return len(self.before.expandtabs(4))


def _mark(line: str) -> _Mark | None:
    found = _FENCE.match(line.rstrip("\r\n"))
    if found is None or "```" in found["info"]:
        return None  # a line with two marks is no fence
    return _Mark(found["before"], found["mark"], found["info"])


class Strings:
    """Follows Python's strings line by line: whether one of three quotes is open, and ends later."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._last = {quote: max((n for n, line in enumerate(lines) if quote in line), default=-1) for quote in _THREE}
        self.quote = ""

    def holds(self, number: int) -> bool:
        """Whether the next line, of this number, begins in a string that it or a later one ends."""
        return bool(self.quote) and self._last[self.quote] >= number

    def read(self, line: str) -> None:
        """Go on by one line."""
        position = 0
        while position < len(line):
            if self.quote:
                end = re.compile(r"(?:[^\\]|\\.)*?" + self.quote, re.DOTALL).match(line, position)
                if end is None:
                    return
                position, self.quote = end.end(), ""
                continue
            found = _STRING.search(line, position)
            if found is None:
                return
            position = found.end()
            if found[0] in _THREE:
                self.quote = found[0]


_THREE = ('"""', "'''")


def lines_of(text: str) -> list[str]:
    """Split after each newline, and nowhere else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def read(text: str, known: frozenset[str], looks_like_code: Callable[[str], bool], *, strings: bool) -> Fenced:
    """Read an answer.

    known: names of languages, lower-case; looks_like_code: of a line; strings: a fence in a string of three
    quotes is no fence.
    """
    lines = lines_of(text)
    marks = _marks(lines, looks_like_code, strings=strings)
    first = next((number for number, mark in enumerate(marks) if mark is not None), len(lines))
    prefilled = first < len(lines) and _closes_the_prompts(lines, marks, first, known, looks_like_code)
    before = "".join(lines[:first])
    if prefilled and (mark := marks[first]) is not None and not mark.alone:
        before += mark.before + "\n"
    blocks: list[Block] = []
    block: Block | None = None
    inside = Strings(lines)
    after = start = first + 1 if prefilled else 0
    for number in range(start, len(lines)):
        mark = marks[number] if block is None else _mark(lines[number])
        if mark is not None and strings and block is not None and inside.holds(number):
            mark = None
        if mark is None:
            if block is not None:
                block.lines.append(lines[number])
                inside.read(lines[number])
        elif block is None:
            if _opens(mark, known):
                blocks.append(block := _opened(mark))
                inside.quote = ""
        elif _closes(mark, block, known):
            if not mark.alone:
                block.lines.append(mark.before + "\n")
            block.closed, block, after = True, None, number + 1
        elif _begins_another(mark, block, known):
            blocks.append(block := _opened(mark))  # the one before was never closed
            inside.quote = ""
        else:
            block.lines.append(lines[number])
            inside.read(lines[number])
    if block is not None and len(block.mark) > _SHORTEST:
        _end_at_shorter(block)
    found = [inner for one in blocks for inner in _within(one, known, looks_like_code, strings=strings)]
    return Fenced(found, before, prefilled, "".join(lines[after:]) if block is None else "")


def _end_at_shorter(block: Block) -> None:
    """End a block that was never closed at its last bare mark, which is shorter than its own."""
    for number in range(len(block.lines) - 1, -1, -1):
        mark = _mark(block.lines[number])
        if mark is not None and mark.bare and mark.alone and mark.mark[0] == block.mark[0]:
            block.closed = True
            del block.lines[number:]
            return


def _marks(lines: list[str], looks_like_code: Callable[[str], bool], *, strings: bool) -> list[_Mark | None]:
    """The marks outside blocks; where the answer begins as a program, none in one of its strings."""
    first = next((line for line in lines if line.strip()), "")
    if not (strings and looks_like_code(first)):
        return list(map(_mark, lines))
    inside = Strings(lines)
    marks: list[_Mark | None] = []
    fenced = False
    for number, line in enumerate(lines):
        mark = None if not fenced and inside.holds(number) else _mark(line)
        fenced = fenced or mark is not None
        marks.append(mark)
        if not fenced:
            inside.read(line)
    return marks


def _closes_the_prompts(
    lines: list[str],
    marks: list[_Mark | None],
    first: int,
    known: frozenset[str],
    looks_like_code: Callable[[str], bool],
) -> bool:
    mark = marks[first]
    before = next((line for line in lines[:first] if line.strip()), mark.before if mark and not mark.alone else "")
    if mark is None or not mark.bare or not before.strip():
        return False
    if not mark.alone and not _PREFIX.fullmatch(mark.before):
        return not _opens(mark, known)
    after = next((line for line in lines[first + 1 :] if line.strip()), "")
    if not after:
        return True
    code = looks_like_code(before) or (before[0] in " \t" and _mark(before) is None)
    return code and not looks_like_code(after)


def _opens(mark: _Mark, known: frozenset[str]) -> bool:
    if _PREFIX.fullmatch(mark.before):
        return True
    if mark.mark[0] == "~" or mark.before.lstrip().startswith(_COMMENT):
        return False
    return mark.name in known or (mark.bare and mark.before.rstrip().endswith((":", ">")))


def _opened(mark: _Mark) -> Block:
    by_rule = _PREFIX.fullmatch(mark.before) is not None
    indent = mark.indent if by_rule else len(mark.before) - len(mark.before.lstrip())
    return Block(mark.name, mark.mark, indent, quoted=by_rule and ">" in mark.before)


def _longer(mark: _Mark, block: Block) -> bool:
    return mark.mark[0] == block.mark[0] and len(mark.mark) >= len(block.mark)


def _begins_another(mark: _Mark, block: Block, known: frozenset[str]) -> bool:
    within = mark.indent >= block.indent + _CLOSING_INDENT
    return mark.alone and not within and mark.name in known and _longer(mark, block)


def _closes(mark: _Mark, block: Block, known: frozenset[str]) -> bool:
    if not _longer(mark, block):
        return False
    if not mark.alone:  # a line of code, and the mark at its end
        return mark.bare and mark.mark[0] == "`" and not mark.before.lstrip().startswith(_COMMENT)
    if mark.indent >= block.indent + _CLOSING_INDENT:
        return False
    return mark.bare or mark.name not in known


def _within(
    block: Block, known: frozenset[str], looks_like_code: Callable[[str], bool], *, strings: bool
) -> Iterator[Block]:
    """A block that is Markdown itself: the blocks in it."""
    if block.name in _MARKDOWN:
        body = block.body
        if "```" in body or "~~~" in body:
            yield from (one for one in read(body, known - _MARKDOWN, looks_like_code, strings=strings).blocks)
            return
    yield block


def _moved_out(lines: list[str]) -> list[str]:
    """Take away the indentation that all lines share."""
    full = [line for line in lines if line.strip()]
    common = _shared([line[: len(line) - len(line.lstrip(" \t"))] for line in full])
    return [line[len(common) :] if line.startswith(common) else line.lstrip(" \t") for line in lines]


def _shared(starts: list[str]) -> str:
    if not starts:
        return ""
    low, high = min(starts), max(starts)
    return next((low[:n] for n, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), low)
