"""Files as people bring them: taken as they are, or refused by row; the rest goes on."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas import FunctionGrader, Prompt
from schemas.codec import encode
from schemas.topics import prompts_topic
from tasks.errors import UnreadableData
from tasks.files.checked import CheckedPrompts

CASES = Path(__file__).parents[2] / "cases" / "outside" / "prompts"


def read(path: Path) -> tuple[list[Prompt], list[tuple[int, str]]]:
    with CheckedPrompts(str(path)) as checked:
        checked.read()
        assert checked.accepted + checked.refused == checked.lines
        return list(checked.prompts()), [(refusal.line, refusal.reason) for refusal in checked.refusals]


def row(number: int, **more: Any) -> dict[str, Any]:
    grader = {"kind": "exact", "answer": "é"}
    return {
        "id": f"p{number}",
        "domain": "d",
        "messages": [{"role": "user", "content": "é 日本"}],
        "grader": grader,
        **more,
    }


def jsonl(rows: list[Any]) -> str:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in rows)


ROWS = [row(number) for number in range(3)]


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        ("array.json", 3, {}),
        ("asjson.parquet", 3, {}),
        ("bom.jsonl", 3, {}),
        ("crlf.jsonl", 3, {}),
        ("cut.jsonl.gz", 182, {183: "breaks off"}),
        ("nested.parquet", 3, {}),
        ("nullarg.jsonl", 1, {}),
        ("nullarg.parquet", 1, {}),
        ("onebad.parquet", 2, {2: "column `messages`: no JSON text"}),
    ],
)
def test_the_handed_cases(name: str, accepted: int, refused: dict[int, str]) -> None:
    prompts, refusals = read(CASES / name)
    assert len(prompts) == accepted
    assert [number for number, _ in refusals] == list(refused)
    assert all(refused[number] in reason for number, reason in refusals)


def test_nulls_of_a_test_are_the_datas() -> None:
    for name in ("nullarg.jsonl", "nullarg.parquet"):
        (prompt,), _ = read(CASES / name)
        assert isinstance(prompt.grader, FunctionGrader)
        (test,) = prompt.grader.tests
        assert json.loads(bytes(test.args)) == [{"k": None}]
        assert json.loads(bytes(test.expected)) == {"k": None, "n": [None, {"z": None}]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
@pytest.mark.parametrize("form", ["lines", "array", "pretty"])
def test_an_encoding_and_a_form_change_nothing(tmp_path: Path, encoding: str, form: str) -> None:
    text = (
        jsonl(ROWS) if form == "lines" else json.dumps(ROWS, ensure_ascii=False, indent=1 if form == "pretty" else None)
    )
    (tmp_path / "p.json").write_bytes(text.encode(encoding))
    prompts, refusals = read(tmp_path / "p.json")
    assert [prompt.id for prompt in prompts] == ["p0", "p1", "p2"]
    assert {prompt.messages[0].content for prompt in prompts} == {"é 日本"}
    assert not refusals


def test_a_latin_1_line_is_refused_and_the_others_are_taken(tmp_path: Path) -> None:
    lines = [json.dumps(each, ensure_ascii=False) for each in ROWS]
    ascii_only = json.dumps(ROWS[1], ensure_ascii=False).replace("日本", "")
    (tmp_path / "p.jsonl").write_bytes(b"\n".join([lines[0].encode(), ascii_only.encode("latin1"), lines[2].encode()]))
    prompts, refusals = read(tmp_path / "p.jsonl")
    assert [prompt.id for prompt in prompts] == ["p0", "p2"]
    assert refusals[0][0] == 2
    assert "no UTF-8: byte 0xe9" in refusals[0][1]
    assert "iconv" in refusals[0][1]


def test_the_bytes_decide_what_a_file_is_and_not_its_name(tmp_path: Path) -> None:
    text = jsonl(ROWS).encode()
    (tmp_path / "plain.jsonl.gz").write_bytes(text)
    (tmp_path / "packed.jsonl").write_bytes(gzip.compress(text))
    (tmp_path / "lines.parquet").write_bytes(text)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "table.jsonl")
    with pa.CompressedOutputStream(str(tmp_path / "p.jsonl.zst"), "zstd") as out:
        out.write(text)
    for path in sorted(tmp_path.iterdir()):
        prompts, refusals = read(path)
        assert ([prompt.id for prompt in prompts], refusals) == (["p0", "p1", "p2"], []), path


def test_an_array_that_breaks_off_is_one_refusal(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(ROWS, indent=1)[:-20])
    prompts, refusals = read(tmp_path / "p.json")
    assert (prompts, len(refusals)) == ([], 1)
    assert "a JSON array that cannot be read" in refusals[0][1]


@pytest.mark.parametrize("content", [b"", b"\n \n", gzip.compress(b""), b"[]"])
def test_a_file_without_a_prompt_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.jsonl").write_bytes(content)
    with pytest.raises(UnreadableData, match=r"p\.jsonl: no prompt in it"):
        read(tmp_path / "p.jsonl")


def test_an_empty_table_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS).slice(0, 0), tmp_path / "p.parquet")
    with pytest.raises(UnreadableData, match="no prompt in it"):
        read(tmp_path / "p.parquet")


def test_a_damaged_row_group_costs_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    rows = [row(number) for number in range(40)]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=10, compression="snappy", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(0)
    content = bytearray(path.read_bytes())
    begin = chunk.data_page_offset
    content[begin : begin + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    path.write_bytes(content)
    prompts, refusals = read(path)
    assert [prompt.id for prompt in prompts] == [f"p{number}" for number in (*range(10), *range(20, 40))]
    assert [number for number, _ in refusals] == [11]
    assert "10 rows from here on cannot be read" in refusals[0][1]


def test_a_cell_that_is_no_text_costs_its_row(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{**each, "messages": json.dumps(each["messages"])} for each in ROWS])
    cells = pa.array([b"p0", b"\xff\xfe", b"p2"], pa.binary()).view(pa.string())
    pq.write_table(table.set_column(0, "id", cells), tmp_path / "p.parquet")
    prompts, refusals = read(tmp_path / "p.parquet")
    assert [prompt.id for prompt in prompts] == ["p0", "p2"]
    assert refusals[0][0] == 2
    assert "column `id`" in refusals[0][1]


def test_what_arrow_adds_is_left_out_and_what_the_data_says_is_kept(tmp_path: Path) -> None:
    rows = [row(0, metadata={"a": 1, "said": None}), row(1, metadata={"b": [None, 2], "said": None}), row(2)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    prompts, _ = read(tmp_path / "p.parquet")
    assert [prompt.metadata for prompt in prompts] == [{"a": 1, "said": None}, {"b": [None, 2], "said": None}, {}]


def test_a_null_in_a_test_that_nobody_can_know_is_refused(tmp_path: Path) -> None:
    def graded(number: int, argument: dict[str, Any]) -> dict[str, Any]:
        tests = [{"args": [argument], "expected": 1}]
        return row(number, grader={"kind": "function", "entry_point": "f", "tests": tests})

    pq.write_table(pa.Table.from_pylist([graded(0, {"k": 1}), graded(1, {"j": 2, "k": 3})]), tmp_path / "p.parquet")
    prompts, refusals = read(tmp_path / "p.parquet")
    assert [prompt.id for prompt in prompts] == ["p1"]
    assert refusals[0][0] == 1
    assert "`j` is null in a test" in refusals[0][1]
    assert "as JSON text" in refusals[0][1]


def any_json(chance: random.Random, depth: int = 3) -> Any:
    kind = chance.randrange(9 if depth else 6)
    if kind < 6:
        words = ("", "é", "日本", "null", "[1]", '"', "\\", "\u2028", "😀", "a\nb", "0")
        whole = chance.choice((0, -1, 2**53 + 1, 10**30, chance.randint(-9, 9)))
        return (None, True, whole, chance.uniform(-1e9, 1e9), chance.choice(words), 1.0)[kind]
    if kind < 8:
        return [any_json(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice('abc é"'): any_json(chance, depth - 1) for _ in range(chance.randrange(4))}


def test_the_same_rows_as_jsonl_and_as_parquet_are_equal_byte_for_byte(tmp_path: Path) -> None:
    chance = random.Random(12)
    rows: list[dict[str, Any]] = []
    for number in range(300):
        tests = [
            {"args": [any_json(chance) for _ in range(chance.randrange(3))], "expected": any_json(chance)}
            for _ in range(chance.randint(1, 3))
        ]
        grader = {"kind": "function", "entry_point": "f", "tests": tests}
        rows.append(row(number, grader=grader, metadata={"a": any_json(chance)}))
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    texts = [{**each, **{key: json.dumps(each[key]) for key in ("grader", "messages", "metadata")}} for each in rows]
    pq.write_table(pa.Table.from_pylist(texts), tmp_path / "p.parquet", row_group_size=77)
    as_lines, none = read(tmp_path / "p.jsonl")
    as_table, neither = read(tmp_path / "p.parquet")
    assert (none, neither, len(as_lines)) == ([], [], 300)
    for left, right in zip(as_lines, as_table, strict=True):
        assert isinstance(left.grader, FunctionGrader)
        assert isinstance(right.grader, FunctionGrader)
        for one, other in zip(left.grader.tests, right.grader.tests, strict=True):
            assert (bytes(one.args), bytes(one.expected)) == (bytes(other.args), bytes(other.expected))
        assert repr(left.metadata) == repr(right.metadata)
        assert (left.id, left.messages) == (right.id, right.messages)


def test_native_rows_of_parquet_are_equal_byte_for_byte_or_refused(tmp_path: Path) -> None:
    chance = random.Random(3)

    def argument() -> dict[str, Any]:
        some = {"n": chance.randint(-(2**62), 2**62), "x": chance.uniform(-9, 9), "t": chance.choice(("é", "", "null"))}
        within = [chance.choice((None, 1, 2**40)) for _ in range(chance.randrange(3))]  # Arrow adds none to a list
        return {**some, "list": within, "k": None if chance.random() < 0.3 else "k"}

    rows: list[dict[str, Any]] = []
    for number in range(200):
        tests = [{"args": [argument()], "expected": chance.randint(0, 9)} for _ in range(chance.randint(1, 3))]
        grader = {"kind": "function", "entry_point": "f", "tests": tests}
        rows.append(row(number, grader=grader, metadata={"a": [argument()["n"]], "b": {"é": chance.random()}}))
    nulls = {n for n, one in enumerate(rows) if any(test["args"][0]["k"] is None for test in one["grader"]["tests"])}
    assert 20 < len(nulls) < 180
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet", row_group_size=77)
    as_lines, _ = read(tmp_path / "p.jsonl")
    as_table, refusals = read(tmp_path / "p.parquet")
    topic = prompts_topic("d")
    assert [encode(one, topic) for one in as_table] == [
        encode(one, topic) for n, one in enumerate(as_lines) if n not in nulls
    ]
    assert [number - 1 for number, _ in refusals] == sorted(nulls)
    assert all("`k` is null in a test" in reason for _, reason in refusals)
