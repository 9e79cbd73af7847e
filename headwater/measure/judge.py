"""`judge`: one program in a file, and tests in whatever form they are at hand, to the grader they ask for."""

from pathlib import Path

import msgspec

from headwater.errors import InputError
from sandbox.languages.languages import by_ending
from schemas import CheckGrader, FunctionGrader, FunctionTest, Grader, StdioGrader, StdioTest, UnittestGrader


def read_program(path: Path) -> bytes:
    """The program as it is. Raises InputError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def grader_for(program: Path, tests: Path, *, language: str | None = None, function: str | None = None) -> Grader:
    """The grader that `tests` says or is.

    - JSON: an object with `kind` is a grader; a list (or JSONL) holds tests: `{"args", "expected"}` calls
      `function`, `{"stdin", "stdout"}` runs the program
    - a folder, `test_*.py` or `*_test.py`: files for unittest or pytest, beside the program under its own name
    - any other `.py`: a program that asserts, or defines `check(candidate)`

    Raises InputError with the file's name, and the line where there is one.
    """
    if tests.is_dir():
        found = {path.name: _text(path) for path in sorted(tests.iterdir()) if path.suffix == ".py"}
        if not any(map(_holds_tests, found)):
            raise InputError(f"{tests}: no test_*.py or *_test.py in it")
        return UnittestGrader(files=found, solution=program.name)
    if tests.suffix == ".py":
        if _holds_tests(tests.name):
            return UnittestGrader(files={tests.name: _text(tests)}, solution=program.name)
        return CheckGrader(entry_point=function or "", program=_text(tests))
    try:
        return _from_json(program, tests, language, function)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{tests}: {error}") from error


def _holds_tests(name: str) -> bool:
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: no UTF-8: {error}") from error


def _from_json(program: Path, path: Path, language: str | None, function: str | None) -> Grader:
    text = _text(path)
    if path.suffix == ".jsonl":
        items = [_item(line, f"{path}:{number}") for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    elif text.lstrip().startswith("{"):
        return msgspec.json.decode(text, type=Grader)
    else:
        raws = msgspec.json.decode(text, type=list[msgspec.Raw])
        items = [_item(bytes(raw), f"{path}, test {number}") for number, raw in enumerate(raws, 1)]
    if not items:
        raise InputError(f"{path}: no tests")
    language = language or _language(program)
    calls = tuple(item for item in items if isinstance(item, FunctionTest))
    runs = tuple(item for item in items if isinstance(item, StdioTest))
    if calls and runs:
        raise InputError(f"{path}: tests with `args` and tests with `stdout` do not go together")
    if runs:
        return StdioGrader(tests=runs, language=language)
    if function is None:
        raise InputError(f"{path}: tests with `args` need --function NAME: what they call")
    return FunctionGrader(entry_point=function, tests=calls, language=language)


def _item(text: str | bytes, place: str) -> FunctionTest | StdioTest:
    try:
        keys = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(text, type=FunctionTest if "args" in keys else StdioTest)
    except msgspec.DecodeError as error:
        raise InputError(f"{place}: {error}") from error


def _language(program: Path) -> str:
    language = by_ending(program.suffix)
    if language is None:
        raise InputError(f"{program}: which language is it in? Give --language")
    return language.name
