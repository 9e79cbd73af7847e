"""What a judged interpreter may claim on its result pipe."""

import pytest

from sandbox.claims import parse

NONCE = "n" * 32


def lines(*parts: str) -> bytes:
    return "".join(f"{NONCE} {part}\n" for part in parts).encode()


def test_an_honest_result() -> None:
    found = parse(lines("compiled null", "value 3"), NONCE)
    assert (found.first, found.bodies, found.valid) == ("compiled", {"value": b"3"}, True)


@pytest.mark.parametrize(
    "junk",
    [
        b"junk\n",
        b"value 3\n",
        lines("value 3") + b"half",
        lines("value 3", "value 4"),
        lines("value 3", "compiled null"),
        lines("value 3", "unheard 1"),
        b"m" * 32 + b" value 3\n",
        b"\xff\xfe\x00\n",
    ],
)
def test_anything_else_makes_it_no_result(junk: bytes) -> None:
    found = parse(lines("compiled null") + junk, NONCE)
    assert found.first == "compiled"
    assert not found.valid


def test_a_syntax_error_counts_only_before_the_program_ran() -> None:
    assert parse(lines('syntax "no"'), NONCE).first == "syntax"
    late = parse(lines("compiled null", 'syntax "no"'), NONCE)
    assert (late.first, late.valid) == ("compiled", False)
