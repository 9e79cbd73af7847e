"""The demo's task source: right answers pass, lazy ones do not, and no task of one split stands in another."""

import ast
import json

import pytest

from tasks.domains.functions import KINDS, OTHER_TEMPLATES, TEMPLATES, TESTS_PER_TASK, FunctionTask, Split, make_task

SPLITS: tuple[Split, ...] = ("train", "held_out", "new_templates")


def text_of(task: FunctionTask) -> str:
    return task.messages[-1].content


def share_passed(source: str, task: FunctionTask) -> float:
    """Run `source` (of this test or of the task source, never a model's) on the task's tests."""
    namespace: dict[str, object] = {}
    exec(source, namespace)
    function = namespace[task.entry_point]
    assert callable(function)
    passed = 0
    for arguments, expected in task.tests:
        actual = function(*arguments)
        passed += type(actual) is type(expected) and actual == expected
    return passed / len(task.tests)


@pytest.mark.parametrize("split", SPLITS)
def test_reference_passes_every_test(split: Split) -> None:
    for index in range(300):
        task = make_task(split, index, seed=7)
        assert share_passed(task.reference, task) == 1.0, task


@pytest.mark.parametrize("split", SPLITS)
def test_lazy_answers_fail(split: Split) -> None:
    for index in range(300):
        task = make_task(split, index, seed=7)
        signature = task.reference.splitlines()[0]
        first = ast.parse(task.reference).body[0]
        assert isinstance(first, ast.FunctionDef)
        constants = {json.dumps(expected) for _, expected in task.tests}
        answers = [
            "pass",
            f"return {first.args.args[0].arg}",
            *(f"return {json.loads(value)!r}" for value in constants),
        ]
        for body in answers:
            assert share_passed(f"{signature}\n    {body}\n", task) <= 0.75, (task, body)


@pytest.mark.parametrize("split", SPLITS)
def test_same_seed_gives_the_same_task(split: Split) -> None:
    assert [make_task(split, index, 3) for index in range(50)] == [make_task(split, index, 3) for index in range(50)]
    assert [make_task(split, index, 3) for index in range(50)] != [make_task(split, index, 4) for index in range(50)]


def test_splits_share_no_text_under_any_seeds() -> None:
    train = {text_of(make_task("train", index, seed)) for index in range(1500) for seed in (0, 1)}
    held_out = {text_of(make_task("held_out", index, seed)) for index in range(500) for seed in (0, 5)}
    new = {text_of(make_task("new_templates", index, 0)) for index in range(500)}
    assert not train & held_out
    assert not (train | held_out) & new


def test_there_are_thousands_of_tasks() -> None:
    assert len({text_of(make_task("train", index, 0)) for index in range(5000)}) > 3000


def test_new_templates_ask_for_other_things() -> None:
    known = {template.expression for template in TEMPLATES} | {template.sentence for template in TEMPLATES}
    assert not known & (
        {template.expression for template in OTHER_TEMPLATES} | {template.sentence for template in OTHER_TEMPLATES}
    )


def test_kinds_take_turns_and_every_template_is_used() -> None:
    tasks = [make_task("train", index, 0) for index in range(1000)]
    assert [task.kind for task in tasks[: len(KINDS)]] == list(KINDS)
    assert {task.metadata["template"] for task in tasks} == {template.sentence for template in TEMPLATES}


def test_tasks_are_json_and_the_prompt_shows_no_test() -> None:
    for index in range(200):
        task = make_task("train", index, 0)
        assert len(task.tests) == TESTS_PER_TASK
        assert json.loads(json.dumps(task.tests)) == [[arguments, expected] for arguments, expected in task.tests]
        assert task.reference.splitlines()[1].removeprefix("    return ") not in text_of(task)
