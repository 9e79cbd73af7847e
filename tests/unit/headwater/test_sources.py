"""A run's own data, refused where it is first seen: before anything starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.run.demo import demo_config
from headwater.run.sources import check_data
from tasks.errors import UnreadableData

GOOD: dict[str, Any] = {
    "domain": "sums",
    "messages": [{"role": "user", "content": "1 + 1"}],
    "grader": {"kind": "exact", "answer": "2"},
}


def check(path: Path, *rows: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = f'data=[{{kind="file", name="mine", path={json.dumps(str(path))}, domain="sums"}}]'
    check_data(demo_config(model="m", seed=0, name="n", overrides=[data]))


@pytest.mark.parametrize("name", ["p.jsonl", "a b é 日本.jsonl", "a+%#&=@:;[].jsonl", "x::y.jsonl"])
def test_good_data_passes_wherever_it_lies(tmp_path: Path, name: str) -> None:
    check(tmp_path / name, GOOD, GOOD)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no prompt in it"),
        ([GOOD, {**GOOD, "grader": {"kind": "exakt"}}], r"1 of 2 rows .* are no prompts; the first: .*p\.jsonl:2: "),
        ([{**GOOD, "id": "a"}, GOOD, {**GOOD, "id": "a"}], r"1 of 3 rows .* have the domain, id and epoch of another"),
        ([GOOD, {**GOOD, "domain": "other"}], "prompts of domain 'other'; this source's domain is 'sums'"),
        ([{**GOOD, "purpose": "evaluate"}], "purpose `evaluate`, on which nothing is trained"),
    ],
)
def test_data_that_no_run_could_use_is_refused(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UnreadableData, match=message):
        check(tmp_path / "p.jsonl", *rows)
