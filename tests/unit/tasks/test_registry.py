"""Domains by name: ours, those of other packages, and what keeps a name from being one."""

import sys
from pathlib import Path

import pytest

from schemas import ExactGrader
from tasks.errors import UnknownDomain
from tasks.registry import domain_names, find_domain


def install(folder: Path, name: str, entry: str, source: str = "") -> None:
    """What pip leaves of a package that brings a domain."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[headwater.domains]\n{entry}\n")
    (folder / f"{name}.py").write_text(source)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


TOY = """\
from schemas import ExactGrader, Message
from tasks.domain import Domain, Problem

class Toy(Domain):
    name = "toy-sums"
    size = 3

    def problem(self, index, seed):
        message = Message(role="user", content=f"{index} + 1")
        return Problem(id=str(index), messages=(message,), grader=ExactGrader(answer=str(index + 1)))

TOY = Toy()
"""


def test_our_own_are_found_and_hold_what_they_say() -> None:
    assert {"functions", "held-out", "new-templates", "humaneval"} <= set(domain_names())
    for name in ("functions", "held-out", "new-templates", "humaneval"):
        domain = find_domain(name)
        problem = domain.problem(0, 7)
        assert problem == domain.problem(0, 7)
        assert problem.reference
        assert all(find_domain(other).name == other for other in domain.held_out)


def test_a_domain_of_another_package_is_one_entry_point(site: Path) -> None:
    install(site, "toy_sums", "toy-sums = toy_sums:TOY", TOY)
    assert "toy-sums" in domain_names()
    domain = find_domain("toy-sums")
    assert [problem.grader for problem in domain.problems(10)] == [ExactGrader(answer=a) for a in "123"]
    assert "toy_sums" in sys.modules


@pytest.mark.parametrize(
    ("entry", "asked", "message"),
    [
        ("x = none_such:X", "functoins", "did you mean 'functions'?"),
        ("x = none_such:X", "x", "cannot be loaded from none_such:X"),
        ("x = odd:NONE", "x", "cannot be loaded from odd:NONE"),
        ("x = odd:Y", "x", "is no `tasks.domain.Domain` of that name"),
        ("humaneval = odd:Y", "humaneval", "two packages bring a domain 'humaneval'"),
    ],
)
def test_what_is_no_domain_is_said(site: Path, entry: str, asked: str, message: str) -> None:
    install(site, "odd", entry, "Y = 3\n")
    with pytest.raises(UnknownDomain, match=message.replace("?", r"\?")):
        find_domain(asked)


def test_all_of_a_domain_without_end_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="has no end"):
        find_domain("functions").problems()
