"""The check values of tests/cases/rl_math (its conventions are in shared/cases/rl_math/README.md)."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

_CASES = Path(__file__).parent / "cases" / "rl_math"


class Case(NamedTuple):
    """One case of a file."""

    id: str
    function: str
    inputs: dict[str, Any]
    params: dict[str, Any]
    expected: dict[str, Any]


@cache
def _load(file: str) -> list[Case]:
    cases = json.loads((_CASES / f"{file}.json").read_text())["cases"]
    return [Case(case["id"], case["function"], case["inputs"], case["params"], case["expected"]) for case in cases]


def cases(file: str, *functions: str, where: Callable[[Case], bool] = lambda _: True) -> pytest.MarkDecorator:
    """Parametrise `case` with those of a file's functions that pass `where`."""
    found = [case for case in _load(file) if case.function in functions and where(case)]
    assert found, f"{file} has no case of {functions}"
    return pytest.mark.parametrize("case", found, ids=[case.id for case in found])


both_precisions = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])


def tensor(values: Any, dtype: torch.dtype, *, grad: bool = False) -> Tensor:
    """Nested lists with numbers, "nan", "inf" and "-inf"."""

    def number(value: Any) -> Any:
        return [number(inner) for inner in value] if isinstance(value, list) else float(value)

    return torch.tensor(number(values), dtype=dtype, requires_grad=grad)


def mask(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.bool)


def assert_close(actual: Tensor | float, expected: Any, dtype: torch.dtype, absolute: float | None = None) -> None:
    """Within the tolerances that the cases suggest."""
    rtol, atol = (1e-9, 1e-11) if dtype == torch.float64 else (1e-4, 1e-5)
    actual = actual if isinstance(actual, Tensor) else torch.tensor(actual, dtype=dtype)
    assert torch.isfinite(actual).all()
    torch.testing.assert_close(
        actual.detach().to(dtype), tensor(expected, dtype), rtol=rtol, atol=max(atol, absolute or 0.0)
    )
