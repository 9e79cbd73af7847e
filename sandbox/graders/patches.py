"""Files out of an answer to a project task: a unified diff, whole files as JSON, or the text of one file. Pure."""

import json
import re
from fnmatch import fnmatchcase
from typing import Any, cast

MAX_FILES = 1000
MAX_CHARACTERS = 16 << 20
"""Of the files that a diff changes, each counted as often as it is changed."""
_HEADER_LINES = 8
_HUNK = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
STEERS_TESTS = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    "jest.config.*",
    "vitest.config.*",
    ".mocharc*",
    "go.work",
    ".cargo",
)
"""Names of files and folders that change how test tools run: where these load the answer, it may not bring
one that the base tree does not have, and what it changes or a build makes under such a name is undone."""


class BadAnswer(ValueError):
    """The answer is no set of files, or does not fit the tree; `str()` says why, for the model."""


def files_of(answer: str, base: dict[str, str], target: str | None, *, may_steer: bool = False) -> dict[str, str]:
    """Return the tree with the answer put onto it; BadAnswer if that cannot or may not be."""
    text = answer.lstrip()
    if target is not None and not text.startswith(("diff --git ", "--- ")):
        changed: dict[str, str | None] = {target: answer}
    elif text.startswith(("diff --git ", "--- ")):
        changed = apply(text, base)
    else:
        changed = _whole(text)
    tree = dict(base)
    for path, content in changed.items():
        _check(path)
        if path not in base and not may_steer:
            _check_steering(path)
        if content is None:
            tree.pop(path, None)
        else:
            tree[path] = content
    return tree


def _whole(text: str) -> dict[str, str | None]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise BadAnswer("the answer is neither a unified diff nor a JSON object of files") from None
    if not isinstance(value, dict):
        raise BadAnswer("the answer's JSON is no object of files")
    files = cast(dict[str, Any], value)
    if len(files) > MAX_FILES or not all(isinstance(content, str) for content in files.values()):
        raise BadAnswer(f"the answer's JSON must map at most {MAX_FILES} paths to texts")
    return dict(files)


def inside(path: str) -> bool:
    """Whether it is a path below a tree."""
    return bool(path) and "\0" not in path and all(part not in ("", ".", "..") for part in path.split("/"))


def _check(path: str) -> None:
    if not inside(path):
        raise BadAnswer(f"not a path in the project: {path[:100]!r}")


def _check_steering(path: str) -> None:
    found = next((part for part in path.split("/") if steers_tests(part)), None)
    if found is not None:
        raise BadAnswer(f"an answer may not add {found[:100]}")


def steers_tests(name: str) -> bool:
    """Whether a file or folder of this name changes how tests run."""
    return any(fnmatchcase(name, pattern) for pattern in STEERS_TESTS)


def apply(diff: str, base: dict[str, str]) -> dict[str, str | None]:
    """Apply a unified diff; None: the file is deleted. Every context line must be where the diff says."""
    changed: dict[str, str | None] = {}
    moved: set[tuple[str, str]] = set()
    lines = lines_of(diff)
    position = copied = 0
    while position < len(lines):
        if not lines[position].startswith("--- "):
            if lines[position].startswith("diff --git "):
                _apply_git_header(lines[position : position + _HEADER_LINES], base, changed, moved)
            position += 1
            continue
        if position + 1 >= len(lines) or not lines[position + 1].startswith("+++ "):
            raise BadAnswer("the diff has a --- line without its +++ line")
        old, new = _name(lines[position]), _name(lines[position + 1])
        is_moved = (old, new) in moved
        source = "" if old is None else _current(new if is_moved and new else old, base, changed)
        copied += len(source)
        if copied > MAX_CHARACTERS or len(changed) > MAX_FILES:
            raise BadAnswer("the diff changes too much")
        position, text = _apply_hunks(lines, position + 2, source, new or old or "")
        if new is None:
            changed[old or ""] = None
        else:
            changed[new] = text
            if old is not None and old != new and not is_moved:
                changed[old] = None
    if not changed:
        raise BadAnswer("the diff changes no file")
    return changed


def _current(path: str, base: dict[str, str], changed: dict[str, str | None]) -> str:
    text = changed[path] if path in changed else base.get(path)
    if text is None:
        raise BadAnswer(f"the diff changes {path[:100]}, which is not there")
    return text


def _apply_git_header(
    lines: list[str], base: dict[str, str], changed: dict[str, str | None], moved: set[tuple[str, str]]
) -> None:
    """What git says above a file's hunks, and alone where there are none: an empty, moved or copied file."""
    said = lines[0].removeprefix("diff --git ").rstrip("\n")
    # of a file that keeps its name git writes `a/NAME b/NAME`, whatever is in NAME
    half = len(said) // 2
    name = said[2:half] if said[half : half + 3] == " b/" and said[2:half] == said[half + 3 :] else None
    source = ""
    for line in lines[1:]:
        if line.startswith(("diff --git ", "--- ", "@@")):
            return
        if line.startswith(("new file mode ", "deleted file mode ")):
            if name is None:
                raise BadAnswer("the diff has a name that is not understood")
            changed[name] = "" if line.startswith("new") else None
        elif line.startswith(("rename from ", "copy from ")):
            source = line.split(" from ", 1)[1].rstrip("\n")
        elif line.startswith(("rename to ", "copy to ")):
            target = line.split(" to ", 1)[1].rstrip("\n")
            if source not in base:
                raise BadAnswer(f"the diff moves {source[:100]}, which is not there")
            # of the tree as it was: two files may change places
            changed[target] = base[source]
            moved.add((source, target))
            if line.startswith("rename"):
                changed.setdefault(source, None)


def lines_of(text: str) -> list[str]:
    """Split at newlines, and at nothing else that `splitlines` takes for a line's end (a form feed, U+2028)."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _name(line: str) -> str | None:
    name = line[4:].split("\t")[0].strip()
    if len(name) > 1 and name[0] == name[-1] == '"':  # git's way to write other letters, by their UTF-8 bytes
        octets = re.sub(r"\\([0-7]{3}|.)", lambda one: _unescaped(one[1]), name[1:-1])
        name = octets.encode("latin-1", "replace").decode("utf-8", "replace")
    return None if name == "/dev/null" else re.sub(r"^[ab]/", "", name)


def _unescaped(code: str) -> str:
    if len(code) == 3:
        return chr(int(code, 8) & 0xFF)
    return {"n": "\n", "t": "\t"}.get(code, code)


def _apply_hunks(lines: list[str], position: int, source: str, name: str) -> tuple[int, str]:
    old = lines_of(source)
    out: list[str] = []
    done = 0
    if position == len(lines) or not _HUNK.match(lines[position]):
        raise BadAnswer(f"the diff for {name[:100]} has no hunk after its names")
    while position < len(lines) and (hunk := _HUNK.match(lines[position])):
        start = max(0, int(hunk[1]) - (0 if hunk[2] == "0" else 1))
        if not done <= start <= len(old):
            raise BadAnswer(f"a hunk of the diff is outside {name}")
        out += old[done:start]
        done = start
        position += 1
        left, right = int(hunk[2] or 1), int(hunk[4] or 1)
        while (left > 0 or right > 0) and position < len(lines):
            mark, body = lines[position][:1], lines[position][1:]
            if position + 1 < len(lines) and lines[position + 1].startswith("\\ No newline"):
                body = body.rstrip("\n")
            if mark in (" ", "-", "\n"):
                body = "\n" if mark == "\n" else body
                if done >= len(old) or old[done].rstrip("\n") != body.rstrip("\n"):
                    raise BadAnswer(f"the diff does not fit {name} at line {done + 1}")
                if mark != "-":
                    out.append(old[done])
                    right -= 1
                done, left = done + 1, left - 1
            elif mark == "+":
                out.append(body)
                right -= 1
            elif mark != "\\":
                break
            position += 1
        if left > 0 or right > 0:
            raise BadAnswer(f"a hunk of the diff for {name} is cut off")
        while position < len(lines) and lines[position].startswith("\\"):
            position += 1
    return position, "".join([*out, *old[done:]])
