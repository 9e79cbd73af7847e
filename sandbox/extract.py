"""The program inside a model's answer. Pure."""

import re

_OPEN = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\s`~{]*)[^\n`]*$", re.MULTILINE)
_NAMES = {
    "python": {"python", "py", "python3"},
    "c": {"c"},
    "cpp": {"cpp", "c++", "cxx", "cc"},
    "bash": {"bash", "sh", "shell"},
    "javascript": {"javascript", "js", "node", "nodejs"},
    "typescript": {"typescript", "ts"},
    "java": {"java"},
    "go": {"go", "golang"},
    "rust": {"rust", "rs"},
    "diff": {"diff", "patch", "json"},
}


def extract_program(text: str, language: str) -> str:
    """Return the last complete fenced block in `language`, else the last complete one of any language,
    else what follows an unterminated last fence, else the whole text."""
    complete: list[tuple[str, str]] = []
    unterminated: tuple[str, str] | None = None
    position = 0
    while (fence := _OPEN.search(text, position)) is not None:
        mark, name = fence.group(1), fence.group(2).lower()
        close = re.compile(rf"^[ \t]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        body = min(fence.end() + 1, len(text))
        end = close.search(text, body)
        if end is None:
            unterminated = (name, text[body:])
            break
        complete.append((name, text[body : end.start()]))
        position = end.end()
    wanted = _NAMES.get(language, {language})
    named = [body for name, body in complete if name in wanted]
    if named:
        return named[-1]
    if unterminated is not None and (not complete or unterminated[0] in wanted):
        return unterminated[1]
    return complete[-1][1] if complete else text
