"""`headwater judge` and `headwater cases` from outside."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ADD = "def add(a, b):\n    return a + b\n"
CALLS = [{"args": [1, 2], "expected": 3}, {"args": [2, 2], "expected": 5}]
CASE: dict[str, Any] = {
    "id": "adds",
    "kind": "judge",
    "family": "E-judging",
    "why": "-",
    "language": "python",
    "mode": "function",
    "function": "add",
    "program": ADD,
    "tests": CALLS,
    "expect": {"reward": 0.5, "verdicts": [["accepted"], ["wrong_answer"]], "host": ["no process of the job left"]},
}


def headwater(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", ["judge", "cases"])
def test_help_has_an_example(command: str) -> None:
    shown = headwater(command, "--help")
    assert shown.returncode == 0
    assert f"Example: headwater {command}" in shown.stdout


def test_judge_says_what_each_test_came_to(tmp_path: Path) -> None:
    program, tests = tmp_path / "add.py", tmp_path / "tests.json"
    program.write_text(ADD)
    tests.write_text(json.dumps(CALLS))
    shown = headwater("judge", program, "--tests", tests, "--function", "add", "--json")
    assert shown.returncode == 1, shown.stderr
    said = json.loads(shown.stdout)
    assert (said["reward"], said["verdict"]) == (0.5, "wrong_answer")
    assert [test["kind"] for test in said["tests"]] == ["accepted", "wrong_answer"]
    tests.write_text("from add import add\n\n\ndef test_it():\n    assert add(1, 1) == 2\n")
    right = headwater("judge", program, "--tests", tests.rename(tmp_path / "test_add.py"))
    assert right.returncode == 0, right.stderr
    assert "reward +1.0000" in right.stdout
    assert "Passed 1/1 tests." in right.stdout


def test_judge_takes_a_grader_and_tells_a_fault_from_a_score(tmp_path: Path) -> None:
    program, tests = tmp_path / "answer.txt", tmp_path / "grader.json"
    program.write_text("four")
    tests.write_text(json.dumps({"kind": "python", "program": "def reward(c, t):\n    return len(c) / 8\n"}))
    shown = headwater("judge", program, "--tests", tests, "--json")
    assert (shown.returncode, json.loads(shown.stdout)["reward"]) == (0, 0.5)
    tests.write_text(json.dumps({"kind": "python", "program": "def reward(c, t):\n    return None\n"}))
    fault = headwater("judge", program, "--tests", tests, "--json")
    assert fault.returncode == 1
    assert json.loads(fault.stdout)["reward"] is None


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("t.json", "[]", [], "no tests"),
        ("t.json", '[{"args": [1], "expected": 1}]', [], "--function"),
        ("t.jsonl", '{"stdout": "1"}\n{"stdot": "1"}', [], "t.jsonl:2"),
        ("t.json", '{"kind": "stdoi"}', [], "stdoi"),
        ("absent.json", None, [], "absent.json: No such file"),
        ("t.json", '[{"stdout": "1"}]', ["--allow-unenforced", "gravity"], "gravity"),
    ],
)
def test_judge_names_what_is_wrong(
    tmp_path: Path, name: str, text: str | None, options: list[str], message: str
) -> None:
    (tmp_path / "add.py").write_text(ADD)
    if text is not None:
        (tmp_path / name).write_text(text)
    shown = headwater("judge", tmp_path / "add.py", "--tests", tmp_path / name, *options)
    assert shown.returncode == 1
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr


def test_cases_says_pass_or_fail_and_counts(tmp_path: Path) -> None:
    wrong = CASE | {"id": "adds wrongly", "expect": {"reward": 1.0, "verdicts": ["accepted"]}}
    unchecked = CASE | {"id": "unchecked", "expect": CASE["expect"] | {"host": ["the moon is full"]}}
    (tmp_path / "one.jsonl").write_text(json.dumps(CASE) + "\n")
    right = headwater("cases", tmp_path, "--json")
    assert right.returncode == 0, right.stdout + right.stderr
    line = json.loads(right.stdout)
    assert set(line) == {"id", "passed", "reward", "verdict", "verdicts", "host", "seconds"}
    assert (line["id"], line["passed"], line["reward"]) == ("adds", True, 0.5)
    assert (line["verdict"], line["verdicts"]) == ("wrong_answer", ["accepted", "wrong_answer"])
    (tmp_path / "two.jsonl").write_text(json.dumps(wrong) + "\n" + json.dumps(unchecked) + "\n")
    shown = headwater("cases", tmp_path)
    assert shown.returncode == 1
    assert "3 cases: 1 passed, 2 failed" in shown.stdout
    assert "the moon is full: not checked" in shown.stdout
    assert "expected reward 1.0..1.0" in shown.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 1}, "unknown key 'speed'"),
        ({"mode": "guess"}, "unknown mode 'guess'"),
        ({"language": "cobol"}, "unknown language 'cobol'"),
        ({"tests": [{"args": [], "expected": 1, "hint": 1}]}, "unknown key 'hint' of a test"),
        ({"tests": []}, "no tests"),
        ({"expect": {"reward": 1, "verdicts": ["acepted"]}}, "acepted"),
        (None, "no cases"),
    ],
)
def test_cases_refuses_what_it_does_not_understand(tmp_path: Path, change: dict[str, Any] | None, message: str) -> None:
    if change is not None:
        (tmp_path / "c.jsonl").write_text(json.dumps(CASE | change))
    shown = headwater("cases", tmp_path)
    assert shown.returncode == 1
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr


def test_cases_refuses_a_line_and_judges_the_others(tmp_path: Path) -> None:
    """Whole numbers of any length are judged; NaN is no JSON, and is said with its file and line."""
    digits = "7" * 5000
    long = json.dumps(CASE | {"id": "long", "tests": [], "expect": {"reward": 1.0, "verdicts": ["accepted"]}})
    long = long.replace('"tests": []', f'"tests": [{{"args": [{digits}, 0], "expected": {digits}}}]')
    lines = [
        json.dumps(CASE),
        long.replace(digits, "NaN").replace('"long"', '"nan"'),
        "no json",
        json.dumps(CASE),
        long,
    ]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    shown = headwater("cases", tmp_path)
    assert shown.returncode == 1
    assert "2 cases: 2 passed, 0 failed, 3 lines refused" in shown.stdout, shown.stdout + shown.stderr
    for number, words in ((2, "NaN"), (3, "JSONDecodeError"), (4, "two cases are named adds")):
        assert f"c.jsonl:{number}: " in shown.stderr
        assert words in shown.stderr
