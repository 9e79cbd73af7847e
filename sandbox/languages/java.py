"""What a Java program calls itself: its file must be named after its public class, its `main` be in any. Pure."""

import re

# what is never closed goes to the end: each of these takes time in proportion to the program
_NOT_CODE = re.compile(
    rb'//[^\n]*|/\*(?:.*?\*/|.*)|"""(?:(?:[^\\]|\\.)*?"""|.*)|"(?:[^"\\\n]|\\.)*"|' + rb"'(?:[^'\\\n]|\\.)*'", re.DOTALL
)
_PACKAGE = re.compile(rb"\bpackage\s+([\w.]+)\s*;")
_TYPE = re.compile(rb"\b(?:class|interface|enum|record)\s+([A-Za-z_]\w*)")
_MAIN = re.compile(rb"\bstatic\b[\w\s]{0,100}\bvoid\s+main\s*\(")


def java_entry(program: bytes) -> tuple[str, str]:
    """Return the name of the program's file, and of the class to start: (`Solution.java`, `contest.Solution`)."""
    code = _NOT_CODE.sub(b" ", program)
    package = _PACKAGE.search(code)
    types = _types(code)
    file = next((name for name, public, _ in types if public), "Main")
    startable = [name for name, _, main in types if main]
    main = next((name for name in (file, "Main") if name in startable), startable[0] if startable else file)
    return f"{file}.java", f"{package[1].decode()}.{main}" if package else main


def _types(code: bytes) -> list[tuple[str, bool, bool]]:
    """The types that stand in no other: (name, public, whether it holds a `main`)."""
    types: list[tuple[str, bool, bool]] = []
    depth = start = 0
    name, public = "", False
    for brace in re.finditer(rb"[{}]", code):
        if brace[0] == b"{":
            if depth == 0:
                head = code[max(start, code.rfind(b";", 0, brace.start()) + 1) : brace.start()]
                found = _TYPE.search(head)
                name = found[1].decode() if found else ""
                public = found is not None and b"public" in head[: found.start()].split()
                start = brace.end()
            depth += 1
        elif depth > 0:
            depth -= 1
            if depth == 0:
                if name:
                    types.append((name, public, _MAIN.search(code, start, brace.start()) is not None))
                start = brace.end()
    return types
