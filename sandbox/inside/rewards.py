"""Calls a reward function of the user's as it is written, whichever library it was written for.

By the names of its parameters: `completions` (TRL: lists, one answer in each), `solution_str` (verl's
`compute_score`), some of `completion`, `prompt`, `answer`, `state`, `info`, `parser` (verifiers), else ours:
`function(completion, task)`. An object with `funcs` and `weights`, or a list of functions, is a rubric: the weighted
sum, and each by its name.
"""

import asyncio
import inspect
import json
from typing import Any

from . import calls, programs, values
from .link import Json

_VERIFIERS = frozenset(("prompt", "completion", "answer", "state", "info", "task", "parser"))


def run_reward(descriptors: "list[int]", process: Json) -> None:
    """Load the task's program, call its function on one answer, claim what it says."""
    source, payload = programs.read_all(descriptors[0]), programs.read_all(descriptors[1])
    claims = programs.ResultPipe(descriptors[2], process["nonce"])
    code = programs.compiled(source, claims)
    programs.be_script(source)
    completion, task = json.loads(payload)
    encoder = calls.ValueEncoder(process["result_bytes"])
    try:
        found = calls.function_of(programs.load(code, process), process["entry_point"])
        claims.write("value", encoder.encode(rewarded(found, completion, task)))
    except values.NotPlain as error:
        claims.text("unprintable", str(error))
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        claims.text("raised", programs.described(error))
    programs.leave()


def rewarded(found: Any, completion: str, task: Json) -> Any:
    """What a function, or a rubric, gives: a number, or named numbers with one named `reward`."""
    functions = found if isinstance(found, list) else _first(found, "funcs", "reward_funcs")
    if functions is None:
        return called(found, completion, task)
    weights = _first(found, "weights", "reward_weights") or [1.0] * len(functions)
    parts = [_number(called(function, completion, task)) for function in functions]
    total = sum(weight * part for weight, part in zip(weights, parts, strict=True))
    names = [getattr(function, "__name__", type(function).__name__) for function in functions]
    if len({*names, "reward"}) <= len(names):  # some have one name, or that of the whole
        names = [f"{name} {number}" for number, name in enumerate(names, 1)]
    return {**dict(zip(names, parts, strict=True)), "reward": total}


def called(function: Any, completion: str, task: Json) -> Any:
    """Call one function in its own form."""
    parameters = inspect.signature(function).parameters
    names = {name for name, one in parameters.items() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
    every = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if "completions" in names:
        value = _finished(function(**_only(_columns(completion, task), names, every=every)))
        return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value
    if "solution_str" in names:
        given = {"data_source": None, "extra_info": None, **task, "solution_str": completion}
        return _scored(_finished(function(**_only(given, names, every=every))))
    if "completion" in names and names != {"completion", "task"} and names <= _VERIFIERS:
        return _finished(function(**_only(_of_verifiers(completion, task), names, every=every)))
    return _finished(function(completion, task))


def _first(found: Any, *names: str) -> "list[Any] | None":
    return next((list(value) for name in names if (value := getattr(found, name, None))), None)


def _of_verifiers(completion: str, task: Json) -> Json:
    chat = isinstance(task.get("prompt"), list)
    said: Any = [{"role": "assistant", "content": completion}] if chat else completion
    about = {"prompt": task.get("prompt"), "answer": task.get("answer", ""), "info": task.get("info", {})}
    state = {**about, "completion": said, "task": task.get("task", "")}
    return {**task, **state, "state": state, "parser": None}


def _columns(completion: str, task: Json) -> Json:
    chat = isinstance(task.get("prompt"), list)
    said = [[{"role": "assistant", "content": completion}]] if chat else [completion]
    columns = {name: [value] for name, value in task.items() if name != "prompt"}
    return {**columns, "prompts": [task.get("prompt", "")], "completions": said}


def _only(given: Json, names: "set[str]", *, every: bool) -> Json:
    return given if every else {name: value for name, value in given.items() if name in names}


def _finished(value: Any) -> Any:
    return asyncio.run(_waited(value)) if inspect.isawaitable(value) else value


async def _waited(value: Any) -> Any:
    return await value


def _scored(value: Any) -> Any:
    """verl takes a number, or a dict with `score`, beside which anything may stand."""
    if isinstance(value, tuple) and value:
        value = value[0]
    if not isinstance(value, dict):
        return value
    numbers = {str(name): float(part) for name, part in value.items() if isinstance(part, (int, float))}
    return {**{name: part for name, part in numbers.items() if name != "score"}, "reward": value["score"]}


def _number(value: Any) -> float:
    return float(value["reward"] if isinstance(value, dict) else value)
