"""DESIGN.md is what the code cites: each citation leads to its place, and the topic table is the code's."""

import re
from pathlib import Path

import pytest

from schemas.topics import FIXED_TOPICS, TopicSpec

ROOT = Path(__file__).parents[2]
DESIGN = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
PACKAGES = ("schemas", "wire", "sandbox", "tasks", "streams", "learner", "headwater", "tests", "deploy")
CITATION = re.compile(r"\binvariants?\s(\d+)|§\s?(\d+)", re.IGNORECASE)


def cited() -> dict[str, list[str]]:
    """What is cited, `invariant 3` or `§4`, and by which files."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in (".py", ".md", ".c", ".sh") and path != Path(__file__):
                for match in CITATION.finditer(path.read_text(encoding="utf-8")):
                    name = f"invariant {match[1]}" if match[1] else f"§{match[2]}"
                    found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def test_each_citation_leads_to_its_place() -> None:
    sections = {f"§{number}" for number in re.findall(r"^## (\d+)\. ", DESIGN, re.MULTILINE)}
    invariants = DESIGN.partition("## 3. Invariants")[2].partition("## 4. ")[0]
    numbers = {f"invariant {number}" for number in re.findall(r"^(\d+)\. \*\*", invariants, re.MULTILINE)}
    assert len(numbers) == 13
    assert sections == {f"§{number}" for number in range(1, 8)}
    found = cited()
    assert len(found) > 10, "nothing was found: has the way to cite changed?"
    assert {name: files for name, files in found.items() if name not in numbers | sections} == {}


@pytest.mark.parametrize("topic", FIXED_TOPICS, ids=lambda topic: topic.name)
def test_the_topic_table_is_the_codes(topic: TopicSpec) -> None:
    (row,) = re.findall(rf"^\| `{topic.name}`.*\|$", DESIGN, re.MULTILINE)
    kept = row.split("|")[-2].strip()
    seconds = topic.retention_seconds
    days = f"{seconds // 86400} day" + ("s" if seconds > 86400 else "") if seconds else "compacted"
    assert kept == days
    assert [event.__name__ for event in topic.events if f"`{event.__name__}" not in row] == []
