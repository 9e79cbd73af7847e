"""Values as they leave the jail: by structure, whatever their methods say."""

import collections
import enum
from typing import Any

import pytest

from sandbox.inside.values import Encoder, NotPlain, decode


def through(value: Any) -> Any:
    return decode(Encoder(1 << 20).encode(value))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**53),
        10**40,
        -(10**40),
        1.5,
        float("inf"),
        "text \u00e9 \U0001f600 \ud800",
        [1, [2, (3, "x")]],
        {1: "a", "b": {2.5: (None,)}},
        {1, 2},
        frozenset({(1, 2)}),
        b"\x00\xff",
        (),
        {},
    ],
)
def test_plain_data_travels_unchanged(value: Any) -> None:
    assert through(value) == value
    assert type(through(value)) is type(value)


class LyingList(list[int]):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        return iter([1, 2, 3])

    @property
    def __class__(self) -> Any:
        return int


class LyingInt(int):
    def __index__(self) -> int:
        return 42

    def __repr__(self) -> str:
        return "42"

    def __add__(self, other: Any) -> int:
        return 42


class LyingText(str):
    def __str__(self) -> str:
        return "expected"


def test_an_instance_of_a_subclass_is_what_it_holds() -> None:
    assert through(LyingList([7])) == [7]
    assert type(through(LyingList([7]))) is list
    assert through(LyingInt(7)) == 7
    assert through(LyingText("real")) == "real"
    assert through(collections.OrderedDict(a=1)) == {"a": 1}
    assert through(collections.namedtuple("Point", "x y")(1, 2)) == (1, 2)
    assert through(enum.IntEnum("Kind", "A B").B) == 2  # type: ignore[attr-defined]


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize("value", [AlwaysEqual(), [AlwaysEqual()], iter([1]), 1j, object, {1: object()}])
def test_what_is_not_plain_data_cannot_be_handed_over(value: Any) -> None:
    with pytest.raises(NotPlain):
        through(value)


def test_size_and_depth_are_bounded() -> None:
    deep: Any = []
    for _ in range(1000):
        deep = [deep]
    circle: list[Any] = []
    circle.append(circle)
    for value in (deep, circle, "x" * 2_000_000, list(range(2_000_000)), ["x" * 1000] * 10_000):
        with pytest.raises(NotPlain):
            through(value)


@pytest.mark.parametrize(
    "text",
    [b"[" * 100_000, b'{"q": 1}', b'{"t": 1}', b'{"i": 3}', b'{"i": "x"}', b'{"d": [[[], 1]]}', b'{"f": "x"}', b"{"],
)
def test_forged_text_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of its kind
        decode(text)
