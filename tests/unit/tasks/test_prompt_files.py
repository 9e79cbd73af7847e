"""Reading prompts: accepted + refused = lines, and each refusal says where and why."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import UnreadableData
from tasks.files.checked import CheckedPrompts

GOOD: dict[str, Any] = {
    "id": "p1",
    "domain": "sums",
    "messages": [{"role": "user", "content": "Add."}],
    "grader": {"kind": "function", "entry_point": "f", "tests": [{"args": [1, 2], "expected": 3}]},
}


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(line + "\n" for line in lines))
    return str(path)


def read(file: str) -> CheckedPrompts:
    checked = CheckedPrompts(file)
    checked.read()
    return checked


def test_accepted_and_refused_are_all_lines(tmp_path: Path) -> None:
    bad = [
        ("{not json", "malformed"),
        (json.dumps({**GOOD, "domain": 3}), "domain"),
        (json.dumps({**GOOD, "grader": {"kind": "functoin"}}), "did you mean `function`?"),
        (json.dumps({**GOOD, "grader": {**GOOD["grader"], "tests": []}}), "tests"),
        (json.dumps({**GOOD, "mesages": []}), "did you mean `messages`?"),
        (json.dumps({**GOOD, "schema_version": 9}), "schema_version 9"),
        (json.dumps({**GOOD, "messages": [{"role": "user", "content": "x" * 5_000_000}]}), "at most 4,194,304"),
        (json.dumps({"type": "source_end", "source": "s", "domain": "sums", "count": 3}), "publish prompts"),
    ]
    file = write(tmp_path / "p.jsonl", json.dumps(GOOD), "", *(line for line, _ in bad), json.dumps(GOOD))
    with read(file) as checked:
        assert (checked.lines, checked.accepted, checked.refused) == (10, 2, 8)
        assert checked.domains == {"sums"}
        for number, (refusal, (_, reason)) in enumerate(zip(checked.refusals, bad, strict=True), start=3):
            assert refusal.line == number
            assert str(refusal).startswith(f"{file}:{number}: ")
            assert reason in refusal.reason


def test_a_repeated_identity_is_said(tmp_path: Path) -> None:
    rows = [GOOD, {**GOOD, "epoch": 1}, {**GOOD, "domain": "other"}, {**GOOD, "id": None}, {**GOOD, "id": None}, GOOD]
    file = write(tmp_path / "p.jsonl", *map(json.dumps, rows))
    with read(file) as checked:
        assert (checked.accepted, checked.refused, checked.repeated) == (6, 0, 1)
        assert checked.first_repeat == f"{file}:6: id 'p1' stands at {file}:1 too"
        with pytest.raises(UnreadableData, match=r"1 of 6 rows .* have the domain, id and epoch of another"):
            checked.must_be_whole()
    with read(write(tmp_path / "q.jsonl", *map(json.dumps, rows[:-1]))) as checked:
        checked.must_be_whole()


def test_a_runs_sampling_is_for_prompts_that_do_not_say(tmp_path: Path) -> None:
    defaults = {"group_size": 4, "deadline_seconds": 9.0, "sampling": {"max_new_tokens": 50, "temperature": 0.5}}
    says = {**GOOD, "group_size": 2, "sampling": {"max_new_tokens": 7}}
    odd = {**GOOD, "sampling": "hot"}
    file = write(tmp_path / "p.jsonl", json.dumps(GOOD), json.dumps(says), json.dumps(odd), "[]", "{")
    with CheckedPrompts(file, defaults) as checked:
        checked.read()
        silent, own = checked.prompts()
        assert [refusal.line for refusal in checked.refusals] == [3, 4, 5]
    assert (silent.group_size, silent.deadline_seconds) == (4, 9.0)
    assert (silent.sampling.max_new_tokens, silent.sampling.temperature) == (50, 0.5)
    assert (own.group_size, own.sampling.max_new_tokens, own.sampling.temperature) == (2, 7, 0.5)


def test_epochs_and_shuffle(tmp_path: Path) -> None:
    file = write(tmp_path / "p.jsonl", *(json.dumps({**GOOD, "id": f"p{i}"}) for i in range(20)))
    with read(file) as checked:
        plain = [(prompt.id, prompt.epoch) for prompt in checked.prompts(2)]
        assert plain == [(f"p{i}", epoch) for epoch in (0, 1) for i in range(20)]
        shuffled = [(prompt.id, prompt.epoch) for prompt in checked.prompts(2, shuffle_seed=1)]
        assert sorted(shuffled) == sorted(plain)
        assert shuffled[:20] != plain[:20]
        assert [name for name, _ in shuffled[:20]] != [name for name, _ in shuffled[20:]]
        assert shuffled == [(prompt.id, prompt.epoch) for prompt in checked.prompts(2, shuffle_seed=1)]


def test_gzip_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    with read(str(path)) as checked:
        assert checked.accepted == 1


def test_parquet_with_structs_and_with_json_text(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    row = {**GOOD, "grader": json.dumps(GOOD["grader"]), "metadata": None}
    pq.write_table(pa.Table.from_pylist([row, {**row, "domain": "NOT A DOMAIN"}]), path)
    with read(str(path)) as checked:
        assert (checked.accepted, checked.refused) == (1, 1)
        assert checked.refusals[0].line == 2
        assert next(checked.prompts()).messages[0].content == "Add."


@pytest.mark.parametrize("name", ["absent.jsonl", "absent.parquet"])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableData, match="no such file"), CheckedPrompts(str(tmp_path / name)) as checked:
        checked.read()


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "p.csv").touch()
    (tmp_path / "p.parquet").write_text("no parquet")
    with pytest.raises(UnreadableData, match="jsonl"), CheckedPrompts(str(tmp_path / "p.csv")) as checked:
        checked.read()
    with pytest.raises(UnreadableData, match="cannot be read"), CheckedPrompts(str(tmp_path / "p.parquet")) as checked:
        checked.read()
