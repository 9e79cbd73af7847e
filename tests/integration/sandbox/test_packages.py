"""Third-party packages: those that a task names, read-only, and no others; math-verify in a jail."""

# ruff: noqa: E501 - a program a line

from pathlib import Path

import pytest

from sandbox import Judge
from sandbox.errors import GraderFault, TaskFault
from sandbox.languages import packages
from schemas import (
    CheckGrader,
    ExactGrader,
    FunctionGrader,
    FunctionTest,
    PythonGrader,
    StdioGrader,
    StdioTest,
    UnittestGrader,
    VerdictKind,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment of two small packages of our own, one of which needs the other."""
    for name, needs, code in (
        ("left_pad", "", "def pad(s, n): return ' ' * (n - len(s)) + s\n"),
        ("shout", "left-pad", "import left_pad\ndef up(s): return left_pad.pad(s.upper(), 5)\n"),
        ("other", "", "X = 1\n"),
    ):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(code)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + (f"Requires-Dist: {needs}\n" if needs else "")
        )
        (info / "RECORD").write_text(
            f"{name}/__init__.py,,\n{name}-1.0.dist-info/METADATA,,\n{name}-1.0.dist-info/RECORD,,\n"
        )
    monkeypatch.setattr(packages, "folder", lambda: tmp_path)


USES = "import shout\ndef f(s):\n    return shout.up(s)\n"


async def test_a_program_has_what_its_task_names_and_what_that_needs(judge: Judge) -> None:
    test = FunctionTest.of(["ab"], "   AB")
    assert (
        await judge.judge(USES, FunctionGrader(entry_point="f", tests=(test,), packages=("shout",)))
    ).kind is VerdictKind.ACCEPTED
    run = StdioGrader(tests=(StdioTest(stdout="   AB"),), packages=("shout",))
    assert (await judge.judge("import shout; print(shout.up('ab'))", run)).kind is VerdictKind.ACCEPTED
    check = CheckGrader(entry_point="f", program="def check(f):\n    assert f('ab') == '   AB'\n", packages=("shout",))
    assert (await judge.judge(USES, check)).kind is VerdictKind.ACCEPTED
    suite = UnittestGrader(
        files={"test_a.py": "from solution import f\ndef test_a():\n    assert f('ab') == '   AB'\n"},
        packages=("shout",),
    )
    assert (await judge.judge(USES, suite)).kind is VerdictKind.ACCEPTED
    own = PythonGrader(program="import shout\ndef reward(c, t): return len(shout.up(c))", packages=("shout",))
    assert (await judge.judge("ab", own)).reward == 5


async def test_nothing_is_there_that_is_not_named(judge: Judge) -> None:
    test = FunctionTest.of(["ab"], "   AB")
    bare = await judge.judge(USES, FunctionGrader(entry_point="f", tests=(test,)))
    assert bare.kind is VerdictKind.RUNTIME_ERROR
    assert "No module named 'shout'" in bare.tests[0].detail
    assert "packages" in bare.tests[0].detail
    program = "def f(s):\n    found = []\n    for name in ('shout', 'left_pad', 'other', 'pytest', 'msgspec'):\n        try:\n            __import__(name)\n            found.append(name)\n        except ImportError: pass\n    return found\n"
    some = FunctionGrader(entry_point="f", tests=(FunctionTest.of(["x"], ["shout", "left_pad"]),), packages=("shout",))
    assert (await judge.judge(program, some)).kind is VerdictKind.ACCEPTED


async def test_packages_cannot_be_changed(judge: Judge) -> None:
    program = "import shout\ndef f(s):\n    try:\n        open(shout.__file__, 'a')\n    except OSError:\n        shout.up = None\n        return 'closed'\n"
    grader = FunctionGrader(entry_point="f", tests=(FunctionTest.of(["x"], "closed"),) * 2, packages=("shout",))
    assert (await judge.judge(program, grader)).kind is VerdictKind.ACCEPTED
    again = FunctionGrader(entry_point="f", tests=(FunctionTest.of(["ab"], "   AB"),), packages=("shout",))
    assert (await judge.judge(USES, again)).kind is VerdictKind.ACCEPTED


async def test_one_that_is_not_installed_says_how(judge: Judge) -> None:
    with pytest.raises(GraderFault, match="headwater sandbox packages add nothing-like-it"):
        await judge.judge(
            USES, FunctionGrader(entry_point="f", tests=(FunctionTest.of([], 1),), packages=("nothing-like-it",))
        )
    with pytest.raises(TaskFault, match="packages are for Python"):
        await judge.judge("", StdioGrader(tests=(StdioTest(stdout=""),), language="bash", packages=("shout",)))


@pytest.mark.parametrize(
    ("text", "answer", "right"),
    [
        ("so \\boxed{\\frac{1}{2}}", "0.5", True),
        ("so \\boxed{0.5}", "\\frac{1}{2}", True),
        ("\\boxed{3}, no: \\boxed{2\\sqrt{3}}", "\\sqrt{12}", True),
        ("<think>\\boxed{4}</think> \\boxed{x+1}", "1+x", True),
        ("\\boxed{\\{1, 2\\}}", "\\{2, 1\\}", True),
        ("the answer is \\boxed{(1, 2)}", "(2, 1)", False),
        ("So $x = 7$.", "7", True),
        ("Hence \\(2\\sqrt{3}\\).", "\\sqrt{12}", True),
        ("\\boxed{4}", "5", False),
        # a part of what was said is not the answer
        ("\\boxed{2\\sqrt{3}}", "3", False),
        ("\\boxed{3 \\times 10^5}", "10^5", False),
        ("\\boxed{\\{2, 1\\}}", "1", False),
        ("\\boxed{5, 6}", "6", False),
        ("between 5 and 6", "6", False),
        ("It is not $6$", "6", False),
        ("nothing", "5", False),
        ("", "5", False),
        ("\\boxed{9^{9^{9^{9}}}}", "1", False),
    ],
)
async def test_mathematical_equivalence(text: str, answer: str, right: bool, judge: Judge) -> None:
    pytest.importorskip("math_verify")
    result = await judge.judge(text, ExactGrader(answer=answer, compare="math"))
    assert (result.kind is VerdictKind.ACCEPTED) is right
