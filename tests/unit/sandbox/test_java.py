"""The file and the class that a Java program asks for."""

import time

import pytest

from sandbox.languages.java import java_entry

MAIN = "public static void main(String[] args) { }"


@pytest.mark.parametrize(
    ("program", "entry"),
    [
        ("public class Solution { %s }", ("Solution.java", "Solution")),
        ("class Main { %s }", ("Main.java", "Main")),
        ("class Solver { %s }", ("Main.java", "Solver")),
        ("package contest;\npublic class Main { %s }", ("Main.java", "contest.Main")),
        ("package a.b.c; class Z { %s }", ("Main.java", "a.b.c.Z")),
        ("import java.util.*;\nclass Helper { }\npublic final class Answer { %s }", ("Answer.java", "Answer")),
        ("public class Pair { }\nclass Main { %s }", ("Pair.java", "Main")),
        ("class A { static class Main { } }\nclass B { %s }", ("Main.java", "B")),
        (
            '// public class Wrong {\n/* class Wrong { */ class Right { String s = "public class W {"; %s }',
            ("Main.java", "Right"),
        ),
        ('@SuppressWarnings({"a", "b"})\npublic class Solution { %s }', ("Solution.java", "Solution")),
        ("public class Main { char c = '{'; %s }", ("Main.java", "Main")),
        ("public interface Go { %s }", ("Go.java", "Go")),
        ("public enum E { A, B; %s }", ("E.java", "E")),
        ("public record P(int x) { %s }", ("P.java", "P")),
        ("class A { %s }\nclass Main { %s }", ("Main.java", "Main")),
        ("class A { static final void main(String... a) { } }", ("Main.java", "A")),
        ("", ("Main.java", "Main")),
    ],
)
def test_entry(program: str, entry: tuple[str, str]) -> None:
    assert java_entry(program.replace("%s", MAIN).encode()) == entry


def test_no_program_takes_long() -> None:
    started = time.monotonic()
    for part in ("/* ", '"""', "{ ", "public class ", "static ", "@a ", "} class A {"):
        java_entry(part.encode() * 50_000)
    assert time.monotonic() - started < 10
