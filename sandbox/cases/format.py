"""The format of cases: a folder of JSONL files, each line a program, its tests, and the result to reach.

The fields are described beside the shared cases; an unknown key, mode or language is an error.
"""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from sandbox.languages.languages import LANGUAGES
from schemas import FunctionGrader, FunctionTest, Grader, Limits, StdioGrader, StdioTest, UnittestGrader, VerdictKind

_KEYS = frozenset(
    {
        "id",
        "kind",
        "family",
        "why",
        "language",
        "mode",
        "program",
        "program_base64",
        "tests",
        "limits",
        "expect",
        "function",
    }
)
_LIMITS = {"cpu_s": "cpu_seconds", "wall_s": "wall_seconds", "processes": "processes", "output_bytes": "output_bytes"}
_TESTS = {"function": {"args", "expected"}, "stdio": {"stdin", "stdout"}, "unittest": {"files", "solution"}}
_EXPECT = frozenset({"reward", "verdicts", "host"})
_TOLERANCE = 1e-9


class BadCase(ValueError):
    """A case that is not in the format: file, line and what is wrong."""


@dataclass(frozen=True)
class Expectation:
    """What a case must come to."""

    lowest: float
    highest: float
    verdicts: tuple[frozenset[str], ...]
    """One for every test; or a single one for all, the job's included."""
    each: bool
    host: tuple[str, ...]

    def reward_fits(self, reward: float | None) -> bool:
        """Whether a reward (None: grader fault) is the expected one."""
        return reward is not None and self.lowest - _TOLERANCE <= reward <= self.highest + _TOLERANCE

    def verdicts_fit(self, job: str | None, tests: list[str]) -> bool:
        """Whether the job's and the tests' verdicts are expected ones."""
        if job == "compile_error" or not tests:
            return any(job in allowed for allowed in self.verdicts)
        if self.each:
            return len(tests) == len(self.verdicts) and all(
                test in allowed for test, allowed in zip(tests, self.verdicts, strict=True)
            )
        return job in self.verdicts[0] and all(test in self.verdicts[0] for test in tests)


@dataclass(frozen=True)
class Case:
    """One case, ready to judge."""

    id: str
    language: str
    program: bytes
    grader: Grader
    expect: Expectation


def load(folder: Path) -> list[Case]:
    """Read every `*.jsonl` of a folder; BadCase for anything not understood, and for no case at all."""
    cases, refused = read(folder)
    if refused:
        raise refused[0]
    return cases


def read(folder: Path) -> tuple[list[Case], list[BadCase]]:
    """Read every `*.jsonl` of a folder: the cases, and what is wrong with lines that are none. BadCase for no line."""
    cases: list[Case] = []
    refused: list[BadCase] = []
    seen: set[str] = set()
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                case = parse(json.loads(line, parse_constant=_no_constant, parse_int=_digits), line)
                if case.id in seen:
                    raise ValueError(f"two cases are named {case.id}")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                refused.append(BadCase(f"{path}:{number}: {type(error).__name__}: {error}"))
            else:
                seen.add(case.id)
                cases.append(case)
    if not cases and not refused:
        raise BadCase(f"{folder}: no cases (*.jsonl)")
    return cases, refused


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _digits(digits: str) -> int:
    """Read a number of the format's own; those of tests, of any length, are read as text (`_calls`)."""
    return int(digits) if len(digits) < 1000 else 0


def parse(raw: dict[str, Any], text: bytes | None = None) -> Case:
    """Make a case of one object, read from `text`; ValueError, KeyError or TypeError if it is not in the format."""
    unknown = set(raw) - _KEYS
    if unknown:
        raise ValueError(f"unknown key {sorted(unknown)[0]!r}")
    if raw["language"] not in LANGUAGES:
        raise ValueError(f"unknown language {raw['language']!r}")
    if ("program" in raw) == ("program_base64" in raw):
        raise ValueError("needs one of program and program_base64")
    source = base64.b64decode(raw["program_base64"], validate=True) if "program_base64" in raw else None
    return Case(
        id=raw["id"],
        language=raw["language"],
        program=source if source is not None else _text(raw["program"]).encode(),
        grader=_grader(raw, json.dumps(raw).encode() if text is None else text),
        expect=_expectation(raw["expect"]),
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    pieces = cast(list[Any], value)
    return "".join(piece if isinstance(piece, str) else piece["repeat"] * piece["times"] for piece in pieces)


def _limits(raw: dict[str, Any]) -> Limits:
    unknown = set(raw) - set(_LIMITS) - {"memory_mb"}
    if unknown:
        raise ValueError(f"unknown limit {sorted(unknown)[0]!r}")
    values = {_LIMITS[name]: value for name, value in raw.items() if name != "memory_mb"}
    if "memory_mb" in raw:
        values["memory_bytes"] = int(raw["memory_mb"]) << 20
    return Limits(**values)


class _Calls(msgspec.Struct):
    """The tests of a case with calls, as their text."""

    tests: list[dict[str, msgspec.Raw]]


def _grader(raw: dict[str, Any], text: bytes) -> Grader:
    limits, language, tests = _limits(raw.get("limits", {})), raw["language"], raw["tests"]
    if raw["mode"] not in _TESTS:
        raise ValueError(f"unknown mode {raw['mode']!r}")
    if not tests:
        raise ValueError("no tests")
    for test in [tests] if raw["mode"] == "unittest" else tests:
        unknown = set(test) - _TESTS[raw["mode"]]
        if unknown:
            raise ValueError(f"unknown key {sorted(unknown)[0]!r} of a test")
    if raw["mode"] == "function":
        given = msgspec.json.decode(text, type=_Calls).tests
        calls = tuple(FunctionTest(args=test["args"], expected=test["expected"]) for test in given)
        return FunctionGrader(entry_point=raw["function"], tests=calls, language=language, limits=limits)
    if raw["mode"] == "stdio":
        runs = tuple(StdioTest(stdin=_text(test["stdin"]), stdout=_text(test["stdout"])) for test in tests)
        return StdioGrader(tests=runs, language=language, limits=limits)
    files = {name: _text(source) for name, source in tests["files"].items()}
    return UnittestGrader(files=files, solution=tests["solution"], language=language, limits=limits)


def _expectation(raw: dict[str, Any]) -> Expectation:
    unknown = set(raw) - _EXPECT
    if unknown:
        raise ValueError(f"unknown expectation {sorted(unknown)[0]!r}")
    reward = raw["reward"]
    if isinstance(reward, dict):
        ((how, value),) = cast(dict[str, float], reward).items()
        if how not in ("equals", "max"):
            raise ValueError(f"unknown expectation of a reward {how!r}")
        lowest, highest = (value, value) if how == "equals" else (-1.0, value)
    else:
        lowest = highest = float(reward)
    names = raw["verdicts"]
    each = bool(names) and isinstance(names[0], list)
    sets = tuple(frozenset(one) for one in names) if each else (frozenset(names),)
    for name in frozenset[str]().union(*sets):
        VerdictKind(name)
    return Expectation(lowest, highest, sets, each, tuple(raw.get("host", ())))
