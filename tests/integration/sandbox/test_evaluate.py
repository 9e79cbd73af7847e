"""The public function, for one answer."""

import time

from sandbox import execute_and_evaluate


def test_execute_and_evaluate() -> None:
    code = "def f(x):\n    return x + 1"
    assert execute_and_evaluate(
        code, [{"args": [1], "expected": 2}, {"args": [1], "expected": 3}], entry_point="f"
    ) == (
        0.5,
        "Passed 1/2 tests.\ntest 2: wrong_answer: f(1) returned 2, expected 3",
    )
    assert execute_and_evaluate("print(input())", [{"stdin": "a", "stdout": "a"}]) == (1.0, "Passed 1/1 tests.")
    assert execute_and_evaluate(code, ["assert f(1) == 2"]) == (1.0, "Passed 1/1 tests.")
    reward, feedback = execute_and_evaluate("def f(", ["assert f(1) == 2"])
    assert reward == -1.0
    assert "SyntaxError" in feedback


def test_starting_and_ending_is_quick() -> None:
    started = time.monotonic()
    execute_and_evaluate("def f(x):\n    return x", [{"args": [1], "expected": 1}], entry_point="f")
    assert time.monotonic() - started < 5.0
