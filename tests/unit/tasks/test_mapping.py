"""Rows of other tools as prompts: columns to fields, templates, and the words where neither is possible."""

import json
import random
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas import ExactGrader, FunctionGrader, Message, Prompt, PythonGrader
from schemas.codec import encode
from schemas.topics import prompts_topic
from tasks.errors import UnreadableData
from tasks.files.answer import answer_grader
from tasks.files.checked import CheckedPrompts
from tasks.files.mapping import ColumnMap, parsed_map

CASES = Path(__file__).parents[2] / "cases" / "outside" / "prompts"
EXACT = {"kind": "exact", "answer": "4"}
QA = {"messages": "question", "answer": "answer"}


def read(path: Path, fields: dict[str, Any] | None, domain: str | None = "math") -> tuple[list[Prompt], list[str]]:
    columns = ColumnMap(fields, domain) if fields else None
    with CheckedPrompts(str(path), {"domain": domain} if domain else None, columns) as checked:
        checked.read()
        return list(checked.prompts()), [str(refusal) for refusal in checked.refusals]


def one(tmp_path: Path, row: dict[str, Any], fields: dict[str, Any]) -> Prompt:
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    (prompt,), refusals = read(tmp_path / "p.jsonl", fields)
    assert not refusals
    return prompt


def refusal(tmp_path: Path, row: dict[str, Any], fields: dict[str, Any] | None) -> str:
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    prompts, (reason,) = read(tmp_path / "p.jsonl", fields)
    assert not prompts
    return reason


def user(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


def test_the_handed_verl_file() -> None:
    fields = {
        "messages": "prompt",
        "answer": "reward_model.ground_truth",
        "id": "extra_info.index",
        "metadata": {"from": "{{data_source}}"},
    }
    prompts, refusals = read(CASES / "verl.parquet", fields)
    assert not refusals
    assert [(prompt.id, prompt.messages) for prompt in prompts] == [(f"{n}", user(f"say {n} 😀")) for n in range(3)]
    assert [prompt.metadata for prompt in prompts] == [{"from": "toy"}] * 3
    graders = [prompt.grader for prompt in prompts if isinstance(prompt.grader, ExactGrader)]
    assert [(grader.answer, grader.compare) for grader in graders] == [("4", "number")] * 3


def test_a_row_of_a_known_form_is_refused_with_the_map_that_it_needs() -> None:
    prompts, refusals = read(CASES / "verl.parquet", None)
    assert (len(prompts), len(refusals)) == (0, 3)
    assert "--domain NAME --map messages=prompt --map answer=reward_model.ground_truth" in refusals[0]
    assert 'map = {messages = "prompt", answer = "reward_model.ground_truth"}' in refusals[0]


def test_a_column_that_is_only_named_otherwise(tmp_path: Path) -> None:
    row = {"id": "a", "domain": "math", "prompt": "2 + 2?", "grader": EXACT, "group_size": 3, "extra": [1]}
    prompt = one(tmp_path, row, {"messages": "prompt"})
    assert (prompt.id, prompt.messages, prompt.group_size) == ("a", user("2 + 2?"), 3)
    assert prompt.grader == ExactGrader(answer="4")


def test_texts_around_columns(tmp_path: Path) -> None:
    row = {"q": "2 + 2?", "n": 7, "a": "4"}
    fields = {"messages": r"{{n}}. {{ q }} Answer as \boxed{{{a}}} or \boxed{}.", "answer": "a"}
    assert one(tmp_path, row, fields).messages == user(r"7. 2 + 2? Answer as \boxed{4} or \boxed{}.")
    system = {"role": "system", "content": "Be brief."}
    fields = {"messages": [system, {"role": "user", "content": "{{q}}"}], "answer": "a"}
    assert one(tmp_path, row, fields).messages == (Message(role="system", content="Be brief."), *user("2 + 2?"))


def test_a_grader_of_ones_own_around_columns(tmp_path: Path) -> None:
    row = {"q": "f?", "tests": [{"args": [10**30, {"k": None}], "expected": 1.5}], "source": "web"}
    fields = {"messages": "q", "grader": {"kind": "function", "entry_point": "f", "tests": "{{tests}}"}}
    grader = one(tmp_path, row, fields).grader
    assert isinstance(grader, FunctionGrader)
    assert [(bytes(t.args), bytes(t.expected)) for t in grader.tests] == [
        (f'[{10**30}, {{"k": null}}]'.encode(), b"1.5")
    ]
    exact = {"kind": "exact", "answer": "{{n}}"}
    assert one(tmp_path, {"q": "?", "n": 10**20}, {"messages": "q", "grader": exact}).grader == ExactGrader(
        answer=str(10**20)
    )
    program = "def compute_score(data_source, solution_str, ground_truth, extra_info):\n    return 1.0\n"
    python = {"kind": "python", "program": program, "task": {"data_source": "{{source}}", "ground_truth": "{{q}}"}}
    grader = one(tmp_path, row, {"messages": "q", "grader": python}).grader
    assert grader == PythonGrader(program=program, task={"data_source": "web", "ground_truth": "f?"})


def test_a_chats_last_answer_is_the_right_one_and_is_not_asked(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "2 + "}, {"type": "text", "text": "2?"}]
    chat = [
        {"role": "system", "content": "s", "name": None},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "It is\n#### 4"},
    ]
    prompt = one(tmp_path, {"messages": chat}, {"answer": "messages"})
    assert prompt.messages == (Message(role="system", content="s"), *user("2 + 2?"))
    assert isinstance(prompt.grader, ExactGrader)
    assert prompt.grader.answer == "4"
    told = refusal(tmp_path, {"messages": chat[:2]}, {"answer": "messages"})
    assert "the chat does not end with an answer of the assistant" in told
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]
    assert "is no text" in refusal(tmp_path, {"messages": image, "a": "4"}, {"messages": "messages", "answer": "a"})
    calls = [{"role": "user", "content": "?", "tool_calls": [1]}]
    assert "tool_calls" in refusal(tmp_path, {"m": calls, "a": "4"}, {"messages": "m", "answer": "a"})


def test_the_words_of_other_chats(tmp_path: Path) -> None:
    turns = [{"from": "system", "value": "s"}, {"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4"}]
    prompt = one(tmp_path, {"conversations": turns}, {"messages": "conversations", "answer": "conversations"})
    assert prompt.messages == (Message(role="system", content="s"), *user("2 + 2?"))
    assert prompt.grader == answer_grader("4")
    developer = [{"role": "developer", "content": "s"}, {"role": "user", "content": "?"}]
    assert one(tmp_path, {"m": developer, "a": 4}, {"messages": "m", "answer": "a"}).messages[0].role == "system"
    odd = [{"role": ["user"], "content": "?"}]
    assert "role" in refusal(tmp_path, {"m": odd, "a": 4}, {"messages": "m", "answer": "a"})


def test_rows_of_an_unknown_form_are_told_that_they_may_be_mapped(tmp_path: Path) -> None:
    assert "--map messages=COLUMN --map answer=COLUMN" in refusal(tmp_path, {"instruction": "?", "output": "4"}, None)
    assert "did you mean `messages`" in refusal(tmp_path, {"mesages": "?", "grader": EXACT}, None)
    (tmp_path / "p.jsonl").write_text(json.dumps({"question": "?", "answer": "4"}))
    _, (reason,) = read(tmp_path / "p.jsonl", QA, domain=None)
    assert "no domain: give --domain NAME, or map `domain`" in reason


def test_objects_as_json_text_are_looked_into(tmp_path: Path) -> None:
    row = {"prompt": json.dumps([{"role": "user", "content": "?"}]), "reward_model": json.dumps({"ground_truth": "4"})}
    prompt = one(tmp_path, row, {"messages": "prompt", "answer": "reward_model.ground_truth"})
    assert prompt.messages == user("?")
    # brackets alone make no chat
    assert one(tmp_path, {"q": "[1, 2]", "a": 3}, {"messages": "q", "answer": "a"}).messages == user("[1, 2]")


def test_a_domain_that_is_given_is_every_prompts(tmp_path: Path) -> None:
    row = {"question": "?", "answer": "4", "domain": "Algebra -> Rings", "type": "short"}
    assert one(tmp_path, row, QA).domain == "math"
    assert one(tmp_path, {**row, "field": "sums"}, {**QA, "domain": "field"}).domain == "sums"


@pytest.mark.parametrize(
    ("row", "fields", "reason"),
    [
        ({"question": "?"}, QA, "p.jsonl:1: there is no column `answer`, but: question"),
        ({"question": "?", "answer": None}, QA, "column `answer` is null"),
        ({"question": None, "answer": "4"}, QA, "column `question` is null"),
        ({"question": "?", "a": {"b": "4"}}, {**QA, "answer": "a.c"}, "there is no column `a.c`"),
        ({"question": "?", "answer": {"b": "4"}}, QA, "`answer`: neither a text nor a number: map `grader`"),
        ({"question": "?", "answer": "a\nb"}, QA, "`answer`: several lines"),
        ({"question": 5, "answer": "4"}, QA, "messages"),
        ({"question": "", "answer": "4"}, QA, "`messages`: there is nothing to ask"),
        ({"question": "\ud83d", "answer": "4"}, QA, "JSON is malformed"),
        ({"question": "[" * 100_000, "answer": "4"}, QA, "cannot be used"),
        ({"question": "?", "answer": "4"}, {"messages": "question"}, "missing required field `grader`"),
    ],
)
def test_a_row_that_cannot_be_mapped(tmp_path: Path, row: dict[str, Any], fields: dict[str, Any], reason: str) -> None:
    assert reason in refusal(tmp_path, row, fields)


def test_a_null_cell_leaves_a_field_its_default(tmp_path: Path) -> None:
    fields = {**QA, "metadata": "extra", "id": "n"}
    prompt = one(tmp_path, {"question": "?", "answer": "4", "extra": None, "n": None}, fields)
    assert (prompt.metadata, prompt.id) == ({}, None)
    assert one(tmp_path, {"question": "?", "answer": "4", "id": None}, QA).id is None


def test_a_cell_that_some_rows_lack_leaves_its_default_in_every_form(tmp_path: Path) -> None:
    rows = [{"question": "?", "answer": "4"}, {"question": "?", "answer": "5", "extra": {"a": 1}}]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist([{"extra": None, **row} for row in rows]), tmp_path / "p.parquet")
    for name in ("p.jsonl", "p.parquet"):
        found, refusals = read(tmp_path / name, {**QA, "metadata": "extra"})
        assert ([prompt.metadata for prompt in found], refusals) == ([{}, {"a": 1}], []), name
        with pytest.raises(UnreadableData, match="no row has the column that `metadata` is mapped to"):
            read(tmp_path / name, {**QA, "metadata": "extar"})


def test_columns_that_are_not_mapped_cost_nothing(tmp_path: Path) -> None:
    odd = {"image": b"\x89PNG\xff", "price": Decimal("1.5"), "lasts": timedelta(1), "type": 7, "schema_version": "x"}
    table = pa.Table.from_pylist([{"question": "?", "answer": "4", **odd}])
    pq.write_table(table, tmp_path / "p.parquet")
    with pa.ipc.new_stream(tmp_path / "p.arrow", table.schema) as stream:
        stream.write_table(table)
    for name in ("p.parquet", "p.arrow"):
        (prompt,), _ = read(tmp_path / name, QA)
        assert prompt.messages == user("?")
        _, (reason,) = read(tmp_path / name, {**QA, "answer": "image"})
        assert "column `image`" in reason
        _, (reason,) = read(tmp_path / name, {**QA, "answer": "answers"})
        assert "no column `answers`, but: " in reason
        assert all(column in reason for column in (*odd, "question", "answer"))


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        (["mesages=prompt"], "no field `mesages`"),
        (["source=x"], "no field `source`"),
        (["answer=a", 'grader={"kind": "exact"}'], "map either `answer` or `grader`"),
        (["messages"], "write it as FIELD=COLUMN"),
        (['grader={"kind": '], "--map grader: no JSON"),
        (["grader={}"], "`grader`: give a column"),
    ],
)
def test_a_map_that_makes_no_sense(pairs: list[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ColumnMap(parsed_map(pairs))


def test_a_map_of_the_command_line() -> None:
    pairs = ["messages={{q}} = ?", "answer=a", 'metadata={"from": "{{b}}"}']
    assert parsed_map(pairs) == {"messages": "{{q}} = ?", "answer": "a", "metadata": {"from": "{{b}}"}}


def any_row(chance: random.Random) -> dict[str, Any]:
    texts = ("é 日本 😀", '"', "\\boxed{", "{{x}}", "a\nb", "null", "\u2028", "7")
    question = "".join(chance.choices(texts, k=3))
    answer = chance.choice((str(chance.randint(-9, 9)), f"{question}\n#### {chance.randint(0, 9)}", "Paris", "é", "B"))
    extra = {"index": chance.randint(-(2**60), 2**60), "score": chance.uniform(-9, 9), "of": chance.choice(texts)}
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": question}]
    tests = [{"args": [chance.randint(0, 9), [chance.choice(texts)]][:1], "expected": [question]} for _ in range(2)]
    return {
        "question": question,
        "chat": chat[chance.randint(0, 1) :],
        "reward_model": {"style": "rule", "ground_truth": answer},
        "extra_info": extra,
        "tests": tests,
        "n": chance.randint(0, 10**6),
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": "chat", "answer": "reward_model.ground_truth", "metadata": "extra_info", "id": "extra_info.index"},
        {
            "messages": "{{n}}: {{question}} {{extra_info.score}}",
            "answer": "n",
            "metadata": {"a": ["{{extra_info}}", 1]},
        },
        {"messages": "question", "grader": {"kind": "function", "entry_point": "f", "tests": "{{tests}}"}},
    ],
)
def test_the_same_rows_in_any_form_are_equal_byte_for_byte(tmp_path: Path, fields: dict[str, Any]) -> None:
    chance = random.Random(1)
    rows = [any_row(chance) for _ in range(200)]
    table = pa.Table.from_pylist(rows)
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "p.json").write_text(json.dumps(rows))
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=33)
    with pa.ipc.new_stream(tmp_path / "p.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=33)
    texts = [
        {key: json.dumps(cell) if isinstance(cell, dict | list) else cell for key, cell in row.items()} for row in rows
    ]
    as_lines, none = read(tmp_path / "p.jsonl", fields)
    assert (len(as_lines), none) == (200, [])
    names = ["p.json", "p.parquet", "p.arrow"]
    if fields.get("metadata") == "extra_info":  # in a template a text is a text
        pq.write_table(pa.Table.from_pylist(texts), tmp_path / "texts.parquet")
        names.append("texts.parquet")
    topic = prompts_topic("math")
    for name in names:
        prompts, refused = read(tmp_path / name, fields)
        assert not refused, name
        assert [encode(one, topic) for one in prompts] == [encode(one, topic) for one in as_lines], name
