"""Files out of an answer to a project task."""

import difflib
import random

import pytest

from sandbox.graders.patches import BadAnswer, files_of

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


def test_files_that_change_places_are_taken_as_they_were() -> None:
    base = {"a": "A\n", "b": "B\n"}
    move = "diff --git a/{0} b/{1}\nsimilarity index 100%\nrename from {0}\nrename to {1}\n".format
    assert files_of(move("a", "b") + move("b", "a"), base, None) == {"a": "B\n", "b": "A\n"}
    assert files_of(move("a", "b") + move("b", "c"), base, None) == {"b": "A\n", "c": "B\n"}
    copy = move("a", "c").replace("rename", "copy")
    assert files_of(copy, base, None) == {**base, "c": "A\n"}
    edited = copy + "--- a/a\n+++ b/c\n@@ -1 +1 @@\n-A\n+C\n"
    assert files_of(edited, base, None) == {**base, "c": "C\n"}


def test_a_file_emptied_or_deleted_is_not_there_as_it_was() -> None:
    base = {"x": "old\n"}
    empty, fill = "--- x\n+++ x\n@@ -1 +0,0 @@\n-old\n", "--- x\n+++ x\n@@ -0,0 +1 @@\n+new\n"
    assert files_of(empty + fill, base, None) == {"x": "new\n"}
    with pytest.raises(BadAnswer, match="not there"):
        files_of(empty.replace("+++ x", "+++ /dev/null") + fill, base, None)


def test_names_of_other_letters_and_with_blanks() -> None:
    base = {"\u00fc.py": "1\n", "x b/y": ""}
    quoted = '--- "a/\\303\\274.py"\n+++ "b/\\303\\274.py"\n@@ -1 +1 @@\n-1\n+2\n'
    gone = "diff --git a/x b/y b/x b/y\ndeleted file mode 100644\n"
    assert files_of(quoted + gone, base, None) == {"\u00fc.py": "2\n"}


@pytest.mark.parametrize(
    "diff",
    [
        "--- /dev/null\n+++ x\n@@ -0,0 +1,50000 @@\n" + "+\n" * 50_000 + "--- x\n+++ x\n@@ -0,0 +0,0 @@\n" * 5000,
        "".join(f"--- big\n+++ c{n}\n@@ -0,0 +0,0 @@\n" for n in range(400)),
        "".join(f"--- /dev/null\n+++ c{n}\n@@ -0,0 +0,0 @@\n" for n in range(2000)),
    ],
    ids=["one file again and again", "copies", "files"],
)
def test_a_diff_that_would_take_for_ever_is_refused(diff: str) -> None:
    with pytest.raises(BadAnswer, match=r"too much|not there"):
        files_of(diff, {"big": "x" * 1_000_000 + "\n"}, None)


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
