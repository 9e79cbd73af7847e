"""The README's "Your data": each of its commands on rows of that form; and what `--dry-run` shows."""

import gzip
import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from headwater.cli import app
from headwater.config.load import build_config
from headwater.config.template import template
from headwater.run.sources import check_data

ROOT = Path(__file__).parents[3]
SECTION = re.findall(r"^## Your data$(.*?)^## ", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
COMMANDS = re.findall(r"^    headwater (publish .*)$", SECTION, re.MULTILINE)
QUESTION = "Tom has 2 bags of 21 nuts. How many nuts?"
ASKED = [{"role": "user", "content": QUESTION}]
SOLVED = "2 * 21 = <<2*21=42>>42\n#### 42"
SHOWN = {
    "verl.parquet": (f"user: {QUESTION}", "the same number as '42'"),
    "trl.jsonl": (f"user: {QUESTION}", r"equal, by math-verify, to '6\\sqrt{49}'"),
    "gsm8k/": (f"user: {QUESTION}", "the same number as '42'"),
    "chats.jsonl": ("system: Be brief.", f"user: {QUESTION}", "the same number as '42'"),
    "saved/": ("user: 2 + 2? End with #### and the number.", "the same number as '4'"),
    "shards/*.jsonl.gz": ("── s0 · domain nuts · train · 8 answers, temperature 1, 256 tokens at most\nuser: Tom",
                          "judged: the last line, must be the same characters as '42'"),
    "code.json": ("user: Write f(x).", '{"kind":"function","entry_point":"f","tests":[{"args":[1],"expected":2}]}'),
}  # fmt: skip
"""Path in the README → what `--dry-run` must show of the data below."""


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data as people have them, under the README's names."""
    monkeypatch.chdir(tmp_path)
    truth = {"style": "rule", "ground_truth": "42"}
    verl = {"data_source": "openai/gsm8k", "prompt": ASKED, "ability": "math", "reward_model": truth}
    pq.write_table(pa.Table.from_pylist([{**verl, "extra_info": {"index": 0, "split": "train"}}]), "verl.parquet")
    lines("trl.jsonl", {"prompt": ASKED, "solution": r"Thus \boxed{6\sqrt{49}}."})
    (tmp_path / "gsm8k").mkdir()
    pq.write_table(pa.Table.from_pylist([{"question": QUESTION, "answer": SOLVED}] * 4), "gsm8k/train-0.parquet")
    (tmp_path / "gsm8k" / "README.md").write_text("about it")
    chat = [{"role": "system", "content": "Be brief."}, *ASKED, {"role": "assistant", "content": "42"}]
    lines("chats.jsonl", {"messages": chat})
    shutil.copytree(ROOT / "tests" / "cases" / "outside" / "datasets" / "selection", "saved")
    (tmp_path / "shards").mkdir()
    for number in range(2):
        own = {"id": f"s{number}", "domain": "nuts", "messages": ASKED, "grader": {"kind": "exact", "answer": "42"}}
        (tmp_path / "shards" / f"{number}.jsonl.gz").write_bytes(gzip.compress(json.dumps(own).encode()))
    Path("code.json").write_text(json.dumps([{"task": "Write f(x).", "tests": [{"args": [1], "expected": 2}]}]))
    return tmp_path


def lines(path: str, *rows: dict[str, Any]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def publish(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["publish", *arguments, "--dry-run"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("path", SHOWN)
def test_each_command_of_the_readme_takes_its_form(path: str) -> None:
    (command,) = [words for line in COMMANDS if path in (words := shlex.split(line))]
    status, output = publish(*command[1:])
    assert status == 0, output
    assert all(words in output for words in SHOWN[path]), output
    assert output.endswith(" 0 refused; nothing was sent\n")


def test_the_readme_has_one_example_a_form() -> None:
    assert [shlex.split(line)[1] for line in COMMANDS] == list(SHOWN)


@pytest.mark.usefixtures("people")
def test_the_readmes_source_is_one_that_a_run_takes() -> None:
    (source,) = tomllib.loads(re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)[0])["data"]
    check_data(build_config({**tomllib.loads(template("run.toml", "mine")), "data": [source]}))


@pytest.mark.usefixtures("people")
def test_a_dry_run_needs_no_broker_shows_three_and_counts_all() -> None:
    status, output = publish("gsm8k/", "--domain", "math", "--map", "messages=question", "--map", "answer=answer")
    assert (status, output.count("judged: "), "4 prompts: 4 accepted" in output) == (0, 3, True)
    lines("two.jsonl", {"question": "?", "answer": "4"}, {"question": "?"})
    status, output = publish("two.jsonl", "--domain", "math", "--map", "messages=question", "--map", "answer=answer")
    assert (status, output.count("judged: ")) == (1, 1)
    assert "two.jsonl:2: there is no column `answer`" in output
    own = {"id": "a", "domain": "math", "messages": ASKED, "grader": {"kind": "exact", "answer": "42"}}
    lines("own.jsonl", own, own)
    status, output = publish("own.jsonl")
    assert (status, "own.jsonl:2: id 'a' stands at own.jsonl:1 too" in output) == (0, True)
