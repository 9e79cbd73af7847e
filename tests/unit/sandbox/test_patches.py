"""Files out of an answer to a project task."""

import difflib
import random

import pytest

from sandbox.patches import BadAnswer, files_of

BASE = {"a.py": "one\ntwo\nthree\n", "pkg/b.py": "x = 1\n"}
DIFF = """--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
"""


def test_what_git_says_without_hunks() -> None:
    empty = "diff --git a/e.py b/e.py\nnew file mode 100644\nindex 0000000..e69de29\n"
    moved = "diff --git a/a.py b/m.py\nsimilarity index 100%\nrename from a.py\nrename to m.py\n"
    gone = "diff --git a/a.py b/a.py\ndeleted file mode 100644\nindex e69de29..0000000\n"
    others = {path: text for path, text in BASE.items() if path != "a.py"}
    assert files_of(empty, BASE, None) == {**BASE, "e.py": ""}
    assert files_of(empty + DIFF, BASE, None) == {**BASE, "e.py": "", "a.py": "one\n2\nthree\n"}
    assert files_of(moved, BASE, None) == {**others, "m.py": BASE["a.py"]}
    renamed = moved + DIFF.replace("+++ b/a.py", "+++ b/m.py")
    assert files_of(renamed, BASE, None) == {**others, "m.py": "one\n2\nthree\n"}
    assert files_of(gone, BASE, None) == others
    with pytest.raises(BadAnswer, match="not there"):
        files_of(moved.replace("a.py", "x.py"), BASE, None)


def test_a_second_section_for_a_file_is_put_onto_the_first() -> None:
    base = {"a": "1\n2\n3\n"}
    first, second = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n", "--- a/a\n+++ b/a\n@@ -3 +3 @@\n-3\n+three\n"
    assert files_of(first + second, base, None) == {"a": "one\n2\nthree\n"}


def test_a_diff() -> None:
    assert files_of(DIFF, BASE, None) == {**BASE, "a.py": "one\n2\nthree\n"}
    assert files_of("diff --git a/a.py b/a.py\nindex 1..2\n" + DIFF, BASE, None)["a.py"] == "one\n2\nthree\n"


def test_new_and_deleted_files() -> None:
    new = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    gone = "--- a/pkg/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n"
    assert files_of(new + gone, BASE, None) == {"a.py": BASE["a.py"], "new.py": "a\nb\n"}


def test_whole_files_and_one_file() -> None:
    assert files_of('{"a.py": "new"}', BASE, None) == {**BASE, "a.py": "new"}
    assert files_of("print(1)\n", BASE, "a.py") == {**BASE, "a.py": "print(1)\n"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("no idea", "neither"),
        ("[1]", "no object"),
        ('{"a": 1}', "paths to texts"),
        ('{"/etc/passwd": ""}', "not a path"),
        ('{"../x": ""}', "not a path"),
        ('{"a//b": ""}', "not a path"),
        ('{"conftest.py": ""}', "may not add"),
        ('{"pkg/sitecustomize.py": ""}', "may not add"),
        (DIFF.replace("two", "zwei"), "does not fit"),
        (DIFF.replace("a.py", "c.py"), "not there"),
        (DIFF.replace("@@ -1,3", "@@ -9,3"), "outside"),
        (DIFF[:-7], "cut off"),
        ("--- a/a.py\n", r"without its \+\+\+"),
        ("[" * 100_000, "neither"),
    ],
)
def test_bad_answers_say_why(answer: str, why: str) -> None:
    with pytest.raises(BadAnswer, match=why):
        files_of(answer, BASE, None)


def test_every_diff_of_difflib_applies() -> None:
    chance = random.Random(7)
    for _ in range(200):
        old = [f"{chance.randint(0, 5)}\n" for _ in range(chance.randint(0, 30))]
        new = [line for line in old if chance.random() > 0.2]
        for _ in range(chance.randint(0, 5)):
            new.insert(chance.randint(0, len(new)), "new\n")
        if old == new:
            continue
        diff = "".join(difflib.unified_diff(old, new, "a/f", "b/f"))
        assert files_of(diff, {"f": "".join(old)}, None) == {"f": "".join(new)}
