"""How long a run will take, from its first updates."""

from typing import Any

import pytest

from headwater.look.estimate import Estimate, estimate


def updates(*seconds: float) -> list[dict[str, Any]]:
    """Updates that took so long, half of it waiting; the last ended at 1000.0."""
    return [
        {"version": number + 1, "time": 1000.0, "seconds": {"wait": each / 2, "step": each / 2, "publish": 0.0}}
        for number, each in enumerate(seconds)
    ]


def told(lines: list[dict[str, Any]], **changes: Any) -> Estimate | None:
    settings: dict[str, Any] = {"max_updates": 20, "max_seconds": None, "evaluation_seconds": 0.0, "now": 1000.0}
    return estimate(lines, **(settings | changes))


def test_nothing_is_said_before_the_first_update() -> None:
    assert told([]) is None


@pytest.mark.parametrize(
    ("seconds", "changes", "expected"),
    [
        ((20.0,), {}, Estimate(19 * 20.0, 20)),
        ((20.0,), {"evaluation_seconds": 90.0, "now": 1012.0}, Estimate(19 * 20.0 - 12 + 90, 20)),
        # the newest five say most
        ((90.0, 20.0, 20.0, 20.0, 20.0, 20.0), {}, Estimate(14 * 20.0, 20)),
        # ten minutes are enough for eight updates of 75 s
        ((75.0, 75.0), {"max_seconds": 600.0}, Estimate(6 * 75.0, 8)),
        ((20.0, 20.0), {"max_seconds": 600.0}, Estimate(18 * 20.0, 20)),
        # neither the past nor what is over is to come
        ((20.0,), {"now": 5000.0}, Estimate(0.0, 20)),
        ((400.0, 400.0), {"max_seconds": 600.0, "evaluation_seconds": 60.0}, Estimate(60.0, 2)),
    ],
)
def test_what_is_left(seconds: tuple[float, ...], changes: dict[str, Any], expected: Estimate) -> None:
    assert told(updates(*seconds), **changes) == expected
