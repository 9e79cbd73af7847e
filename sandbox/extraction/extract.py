"""The program inside a model's answer: the rules of the README, "The program in an answer". Pure."""

import re
from collections.abc import Callable, Sequence
from functools import cache

from sandbox.extraction.fences import END_TOKEN, TAG, Block, Fenced, lines_of, read
from sandbox.extraction.patterns import find_last
from sandbox.extraction.pieces import completed
from sandbox.languages.languages import LANGUAGES
from schemas import ExtractPattern, ExtractRule

_THOUGHT = re.compile(r"(?<![\"'`\\])</think(?:ing)?>(?![\"'`])")
_OPEN_THOUGHT = re.compile(r"\s*<think(?:ing)?>")
_OTHER_THOUGHT = re.compile(
    r"\s*(?:<(reasoning|thought|scratchpad|analysis)>.*?</\1>|\[THINK\].*?\[/THINK\])", re.DOTALL
)
_FILES = {"diff": ("diff", "patch", "json")}
"""What is no language of ours, but asked for: the files of a project."""
_OTHERS = frozenset(
    [
        "bat",
        "cmd",
        "console",
        "cs",
        "css",
        "csv",
        "diff",
        "dockerfile",
        "haskell",
        "html",
        "ini",
        "input",
        "json",
        "jsx",
        "julia",
        "kotlin",
        "latex",
        "lua",
        "makefile",
        "markdown",
        "md",
        "mermaid",
        "output",
        "patch",
        "perl",
        "php",
        "powershell",
        "pseudocode",
        "r",
        "ruby",
        "scala",
        "sql",
        "swift",
        "terminal",
        "tex",
        "toml",
        "ts",
        "tsx",
        "typescript",
        "xml",
        "yaml",
        "yml",
        "zsh",
    ]
)
_PLAIN = frozenset({"", "code", "text", "txt", "plaintext", "program", "solution"})
_TAGS = (("<answer>", "</answer>"), ("<code>", "</code>"), ("<solution>", "</solution>"), ("[python]", "[/python]"))
_ON_ONE_LINE = re.compile(r"(`+)([^`\n]+)\1")
_PROSE = re.compile(r"(?:[A-Z][^=(){}\[\];<>]*(?:[.!?:]|\w)|[A-Z][^={}\[\];<>]*[.!?]|[-*] [A-Z].*)\s*$")
_HEADING = re.compile(
    r"(?:#{1,6} [A-Z].*[a-z]|\*\*.*\*\*:?|\d{1,2}[.)] +[A-Z*`].*|\$[^$]+\$.*|[A-Z][a-z]+(?: [a-z]+){0,3}:)\s*$"
)
_STATEMENT = re.compile(
    r"\s*(?:from\s+[\w.]+\s+import\s|import\s+\w[\w., ]*$|(?:async\s+)?def\s+\w+\s*[(\[]|class\s+\w+\s*[:(\[]"
    r"|@\w|#|\"\"\"|'''|(?:if|while|for|with|try|elif|else|match|except|finally)\b.*:\s*(?:#.*)?$|return\b"
    r"|[\w.\[\]'\"]+(?:\s*,\s*[\w.\[\]'\"]+)*(?:\s*:\s*[\w.\[\], |]+)?\s*[-+*/%&|^]?=(?!=)"
    r"|[\w.]+\(.*\)\s*$|[\w.]+\($)"
)
_BRACES = re.compile(
    r"\s*(?://|/\*|#\s*(?:include|define|!|pragma)|(?:using|import|package|public|class|struct|fn|func|use|const|let|var"
    r"|function|int|void|template|extern|static|namespace|typedef|enum|interface)\b.*[;{(]?\s*$|.*[;{}]\s*$)"
)


def extract_program(
    text: str,
    language: str,
    names: Sequence[str] = (),
    rule: ExtractRule | ExtractPattern | None = None,
) -> str:
    """Return the part of an answer that is the program.

    language: a name of `LANGUAGES`, or `diff` for the files of a project; names: what the program must define
    (`Solution.total` counts as `Solution`); rule: the task's own, in place of the table's. ValueError for a pattern
    that is none.
    """
    if rule == "whole":
        return text
    if isinstance(rule, ExtractPattern):
        found = find_last(rule.pattern, text)
        return found or ""
    said = without_thought(text)
    fenced = read(said, _known(), _looks_like(language), strings=language == "python")
    blocks = _candidates(fenced, language)
    if not blocks:
        return _unfenced(fenced.before if fenced.blocks else said, language)
    if rule in ("first", "last", "longest"):
        of = _preferred(blocks, language)
        return of[0].body if rule == "first" else of[-1].body if rule == "last" else max(of, key=_size).body
    return _chosen(fenced, blocks, language, names)


def without_thought(text: str) -> str:
    """What stands after the last `</think>`; nothing, where a thought was begun and not ended."""
    text = text.removeprefix("\ufeff")
    ends = list(_THOUGHT.finditer(text))
    if ends:
        return text[ends[-1].end() :]
    if (other := _OTHER_THOUGHT.match(text)) is not None:
        return text[other.end() :]
    return "" if _OPEN_THOUGHT.match(text) else text


@cache
def _fences(language: str) -> frozenset[str]:
    return frozenset(LANGUAGES[language].fences if language in LANGUAGES else _FILES.get(language, (language,)))


@cache
def _known() -> frozenset[str]:
    return _OTHERS.union(*(language.fences for language in LANGUAGES.values()), ("text", "txt", "plaintext"))


def _looks_like(language: str) -> Callable[[str], bool]:
    code = _STATEMENT if language in ("python", "bash") else _BRACES
    return lambda line: code.match(line) is not None


def _size(block: Block) -> int:
    return len(block.body)


def _candidates(fenced: Fenced, language: str) -> list[Block]:
    blocks = [block for block in fenced.blocks if any(line.strip() for line in block.lines)]
    if fenced.prefilled:
        first = Block(min(_fences(language)), "```", lines=lines_of(fenced.before), closed=True)
        blocks.insert(0, first)
    return blocks


def _preferred(blocks: list[Block], language: str) -> list[Block]:
    """Those named as the language; else those that say nothing, complete and looking like code first; else all."""
    ours, looks_like_code = _fences(language), _looks_like(language)
    named = [block for block in blocks if block.name in ours]
    plain = [block for block in blocks if block.name in _PLAIN or block.name not in _known()]
    for group in (named, plain, blocks):
        complete = [block for block in group if block.closed]
        coding = [block for block in complete if looks_like_code(_first_line(block.body))]
        chosen = complete if group is named else coding or complete
        if chosen or group:
            return chosen or group
    return blocks


def _chosen(fenced: Fenced, blocks: list[Block], language: str, names: Sequence[str]) -> str:
    """The last block that defines what is asked for; else the last of the preferred ones."""
    preferred = _preferred(blocks, language)
    wanted = {name.partition(".")[0].removesuffix("()") for name in names} - {""}
    if not wanted or language != "python":
        return preferred[-1].body
    named = [block for block in blocks if block in preferred or block.name in (*_PLAIN, *_fences(language))]
    complete = [block for block in named if block.closed]
    bodies = [*(block.body for block in complete or named), _unfenced(fenced.after, language)]
    counted = [len(wanted & _defined(body)) for body in bodies]
    best = max(counted)
    if best == 0:
        return preferred[-1].body
    pieces = "\n".join(block.body for block in preferred)
    if best < len(wanted) and len(wanted & _defined(pieces)) > best:
        return pieces
    last = len(bodies) - 1 - counted[::-1].index(best)
    return completed(bodies[last], bodies[:last])


def _defined(program: str) -> set[str]:
    """Names that a Python program defines at its top."""
    found = re.findall(
        r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)", program, re.MULTILINE
    )
    return {one or other for one, other in found}


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def _unfenced(text: str, language: str) -> str:
    """The program of an answer without fences: within tags, or between sentences, or all of it."""
    text = _tagged(text)
    looks_like_code = _looks_like(language)
    one_line = _ON_ONE_LINE.fullmatch(text.strip())
    if one_line is not None:
        code = one_line[2].strip()
        word, _, rest = code.partition(" ")
        return rest.strip() if len(one_line[1]) >= 3 and word.lower() in _known() else code
    lines = lines_of(text)
    while lines and not TAG.sub("", END_TOKEN.sub("", lines[-1])).strip():
        lines.pop()
    if lines and END_TOKEN.search(lines[-1]):
        lines[-1] = END_TOKEN.sub("", lines[-1])
    code = [number for number, line in enumerate(lines) if looks_like_code(line) and not _is_prose(line)]
    if not code:
        return "".join(lines)
    first = code[0]
    if not all(not line.strip() or _is_prose(line) for line in lines[:first]):
        first = 0
    last = len(lines)
    while last > first + 1 and (not lines[last - 1].strip() or _is_prose(lines[last - 1])):
        last -= 1
    return "".join(lines[first:last] if any(line.strip() for line in lines[last:]) else lines[first:])


def _tagged(text: str) -> str:
    """What the last pair of tags holds; all of it where there is none."""
    small = text.lower()
    for begin, end in _TAGS:
        last = small.rfind(end)
        first = small.rfind(begin, 0, last) if last >= 0 else -1
        if first >= 0:
            return text[first + len(begin) : last].removeprefix("\r\n").removeprefix("\n")
    return text


def _is_prose(line: str) -> bool:
    """Whether a line is a sentence of three words or more with none of a program's signs, or a heading."""
    if line[:1] in " \t":
        return False
    return _HEADING.match(line) is not None or (_PROSE.match(line) is not None and len(line.split()) >= 3)
