"""The program inside a model's answer."""

import pytest

from sandbox.extract import extract_program


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
        ("```bash\npip install x\n```\n```\ncut off", "python", "pip install x\n"),
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
