"""The program inside a model's answer."""

# ruff: noqa: E501 - an answer a line

import pytest

from sandbox.extraction.extract import extract_program
from schemas import ExtractPattern, ExtractRule


@pytest.mark.parametrize(
    ("text", "language", "program"),
    [
        ("def f(): pass", "python", "def f(): pass"),
        ("Sure:\n```python\nx = 1\n```\nDone.", "python", "x = 1\n"),
        ("```python\nfirst\n```\n```python\nlast\n```", "python", "last\n"),
        ("```py\nx\n```\n```text\noutput\n```", "python", "x\n"),
        ("```\nplain\n```", "python", "plain\n"),
        ("```Python3 title=a\nx\n```", "python", "x\n"),
        ("```python\ncut off", "python", "cut off"),
        ("```bash\npip install x\n```\n```python\ncut off", "python", "cut off"),
        # a block named as another language is not the program, though it alone is complete
        ("```bash\npip install x\n```\n```\ncut off", "python", "cut off"),
        ("````python\na = '''\n```\n'''\n````", "python", "a = '''\n```\n'''\n"),
        ("```c++\nint main(){}\n```", "cpp", "int main(){}\n"),
        ("~~~rust\nfn main(){}\n~~~", "rust", "fn main(){}\n"),
        ("```python\r\nx = 1\r\n```", "python", "x = 1\r\n"),
        ("", "python", ""),
        ("```python", "python", ""),
    ],
)
def test_extraction(text: str, language: str, program: str) -> None:
    assert extract_program(text, language) == program


ADD = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
USE = "print(add(1, 2))\n"


def fenced(body: str, name: str = "python") -> str:
    return f"```{name}\n{body}```\n"


def indented(text: str, by: str) -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


DOC = '"""'
FOUND = {
    # CRLF
    "crlf": fenced(ADD).replace("\n", "\r\n"),
    "crlf at the closing mark": f"```python\n{ADD}```\r\nThat is it.\r\n",
    "crlf at the opening mark": f"So:\r\n```python\r\n{ADD}```",
    "crlf in a list": f"1. So:\r\n{indented(fenced(ADD), '   ')}".replace("\n", "\r\n").replace("\r\r", "\r"),
    # lists and quotes
    "list, two deep": f"- a\n  - b\n\n{indented(fenced(ADD), '    ')}",
    "list, by a tab": f"-\tSo:\n\n{indented(fenced(ADD), chr(9))}",
    "list, mark behind the bullet": f"- ```python\n{indented(ADD, '  ')}  ```\n",
    "list, content at the margin": f"1. So:\n   ```python\n{ADD}   ```\n",
    "list, closed at the margin": f"1. So:\n   ```python\n{indented(ADD, '   ')}```\n",
    "quote": indented(fenced(ADD), "> "),
    "quote in a list": f"1. So:\n{indented(fenced(ADD), '   > ')}",
    # a fence that the prompt had opened
    "prefilled": f"{ADD}```",
    "prefilled, with words": f"{ADD}```\nThis adds.\n",
    "prefilled, and an example": f"{ADD}```\nUse it so:\n{fenced(USE)}",
    "prefilled, a plain example": f"{ADD}```\nIt gives:\n```\n3\n```\n",
    "prefilled, mark behind the code": f"{ADD.rstrip()}```",
    "prefilled, crlf": f"{ADD}```".replace("\n", "\r\n"),
    "prefilled, end token": f"{ADD}```<|im_end|>",
    # marks with something beside them
    "words before the mark": f"Here is the code: {fenced(ADD)}It adds.",
    "words with a name in code before the mark": f"Here is `add`: {fenced(ADD)}",
    "words behind the closing mark": f"```python\n{ADD}``` That is it.",
    "end token": f"```python\n{ADD}```<|im_end|>",
    "another end token": f"```python\n{ADD}```<|eot_id|>\n",
    "end token of a sentence": f"```python\n{ADD}```</s>",
    "tags": f"<answer>```python\n{ADD}```</answer>",
    "tags on lines of their own": f"<answer>\n{fenced(ADD)}</answer>",
    "mark behind the last line": f"```python\n{ADD.rstrip()}```",
    "attributes": f"```{{.python .numberLines}}\n{ADD}```",
    "blank before the name": f"``` python\n{ADD}```",
    # fences in strings and docstrings
    "docstring": fenced(
        'def add(a, b):\n    """Add.\n\n    ```python\n    add(1, 2)\n    ```\n    """\n    return a + b\n'
    ),
    "docstring, plain marks": fenced(
        'def add(a, b):\n    """Add.\n    ```\n    add(1, 2)\n    ```\n    """\n    return a + b\n'
    ),
    "docstring, two deep": fenced('def add(a, b):\n  """Add.\n  ```\n  add(1, 2)\n  ```\n  """\n  return a + b\n'),
    "string at the margin": fenced(f'HELP = """\n```\nadd(1, 2)\n```\n"""\n\n{ADD}'),
    "string at the margin, named": fenced(f"HELP = '''\n```python\nadd(1, 2)\n```\n'''\n{ADD}"),
    "string in a program without fences": f'HELP = """\n```\nadd(1, 2)\n```\n"""\n\n{ADD}',
    "quotes in comments and strings": fenced(f"# don't\nA = '\"\"\"'\n{ADD}") + "Use:\n" + fenced("1\n", "text"),
    # drafts
    "thought, fenced draft": f"<think>\n{fenced(WRONG)}no\n</think>\n{fenced(ADD)}",
    "thought, final without fence": f"<think>\n{fenced(WRONG)}no\n</think>\n{ADD}",
    "thought, open fence": f"<think>\n```python\ndef add(a, b):\n</think>\n{fenced(ADD)}",
    "thought, opened by the prompt": f"first\n{fenced(WRONG)}</think>\n\n{fenced(ADD)}",
    "thought, two of them": f"<think>a</think>\n{fenced(WRONG)}<think>no</think>\n{fenced(ADD)}",
    "its mark in a string": fenced(f'END = "</think>"\n{ADD}'),
    "fenced draft, final without": f"{fenced(WRONG)}No, that subtracts:\n\n{ADD}",
    "draft never closed": f"```python\ndef add(a, b):\n    return\nWait.\n{fenced(ADD)}",
    "two drafts": f"{fenced(WRONG)}Better:\n{fenced(ADD)}",
    # which block
    "example behind it": f"{fenced(ADD)}Use it so:\n{fenced(USE)}",
    "plain, then a shell block": f"{fenced(ADD, '')}Run it:\n{fenced('python add.py' + chr(10), 'bash')}",
    "plain, then output": f"{fenced(ADD, '')}It prints:\n{fenced('3' + chr(10), 'output')}",
    "plain, then plain output": f"{fenced(ADD, '')}It prints:\n{fenced('3' + chr(10), '')}",
    "plain, then json": f"{fenced(ADD, '')}{fenced('{}' + chr(10), 'json')}",
    "plain, then a named example": f"{fenced(ADD, '')}Use:\n{fenced(USE)}",
    "a file's name for a language": f"{fenced(ADD, 'add.py')}",
    "within markdown": f"````markdown\n# Add\n\n{fenced(ADD)}````\n",
    "within markdown, three marks": f"```markdown\n# Add\n\n{fenced(ADD)}```\n",
    "four marks, closed by three": f"````python\n{ADD}```\n",
    "a draft, then the final without a name": f"{fenced(WRONG)}Better:\n{fenced(ADD, '')}",
    "an import told before": f"{fenced('import operator' + chr(10))}{fenced('def add(a, b):' + chr(10) + '    return operator.add(a, b)' + chr(10))}",
    "a helper told before": f"{fenced('def plus(a, b):' + chr(10) + '    return a + b' + chr(10) + 'print(undefined)' + chr(10))}{fenced('def add(a, b):' + chr(10) + '    return plus(a, b)' + chr(10))}",
    "another kind of thought": f"<reasoning>\n{fenced(WRONG)}</reasoning>\n{fenced(ADD)}",
    "a byte order mark": f"\ufeff{ADD}",
    # no fences
    "a numbered list ahead": f"1. First, define the function.\n2. Then add.\n\n{ADD}",
    "a heading ahead": f"**Solution**\n\n{ADD}",
    "a formula behind": f"{ADD}\n$O(1)$ time, $O(1)$ space.",
    "a sentence with brackets behind": f"{ADD}\nThis runs in constant time (see above).",
    "sentences around it": f"Here is the function you want:\n\n{ADD}\nIt adds two numbers.",
    "no fences, end token": f"{ADD}<|endoftext|>",
    "no fences, tags": f"<answer>\n{ADD}</answer>",
    "on one line": "`def add(a, b): return a + b`",
    "on one line, named": "```python def add(a, b): return a + b```",
}


@pytest.mark.parametrize("shape", FOUND)
def test_a_right_program_is_found_as_a_person_would(shape: str) -> None:
    program = extract_program(FOUND[shape], "python", ["add"])
    names: dict[str, object] = {}
    exec(program, names)
    add = names["add"]
    assert callable(add)
    assert add(1, 2) == 3


@pytest.mark.parametrize(
    "text",
    [
        f"<think>\n{fenced(ADD)}",
        f"<think>{fenced(ADD)}</think>\nI could not do it.",
        fenced(ADD, "text") + fenced(WRONG),
        f"{fenced(ADD)}No:\n{fenced(WRONG)}",
    ],
)
def test_what_is_no_answer_is_not_taken_for_one(text: str) -> None:
    names: dict[str, object] = {}
    try:
        exec(extract_program(text, "python", ["add"]), names)
    except SyntaxError:
        return
    add = names.get("add")
    assert not callable(add) or add(1, 2) != 3


CPP = "#include <iostream>\nint main() { std::cout << 6; }\n"


@pytest.mark.parametrize(
    "text",
    [
        fenced(CPP, "C++"),
        f"{fenced(CPP, '')}Output:\n{fenced('6' + chr(10), '')}",
        f"{CPP}```\nIt prints six.",
        f"Here is the program you want:\n\n{CPP}",
        f"{fenced('6' + chr(10), 'text')}{fenced(CPP, 'cc')}{fenced('./a.out' + chr(10), 'sh')}",
    ],
)
def test_programs_of_other_languages(text: str) -> None:
    assert extract_program(text, "cpp").strip() == CPP.strip()


def test_what_is_asked_for_may_be_told_in_pieces() -> None:
    text = f"{fenced('class A: pass' + chr(10))}and\n{fenced('class B(A): pass' + chr(10))}"
    assert extract_program(text, "python", ["A", "B"]) == "class A: pass\n\nclass B(A): pass\n"


@pytest.mark.parametrize(
    ("rule", "program"),
    [
        (None, "b = 2\nc = 3\n"),
        ("last", "d = 4\n"),
        ("first", "a = 1\n"),
        ("longest", "b = 2\nc = 3\n"),
        ("entry_point", "b = 2\nc = 3\n"),
        (ExtractPattern(pattern=r"<final>(.*?)</final>"), "e"),
        (ExtractPattern(pattern=r"\w = \d"), "d = 4"),
        (ExtractPattern(pattern="nothing like it"), ""),
    ],
)
def test_a_task_may_name_the_rule(rule: ExtractRule | ExtractPattern | None, program: str) -> None:
    blocks = "a = 1\n", "b = 2\nc = 3\n", "d = 4\n"
    text = "".join(map(fenced, blocks)) + "<final>no</final><final>e</final>"
    assert extract_program(text, "python", ["c"], rule) == program
    assert extract_program(text, "python", ["c"], "whole") == text


def test_reading_takes_time_in_proportion_to_the_text() -> None:
    for part in (
        "```\n",
        "```python\n",
        '"""\n```\n',
        "x" * 10 + "```",
        "> ",
        "- ",
        "```a```",
        "'",
        "<answer>",
        "`",
        " ",
    ):
        extract_program("```" + part * 20_000 + "x", "python", ["add"])
        extract_program("`" + part * 20_000 + "x", "cpp")
        extract_program(part * 20_000, "python", ["add"])
