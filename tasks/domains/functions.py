"""Small function-writing problems, made from a seed: the task source of the demo.

A *template* is a sentence and the Python expression that answers it; function name, argument names and constants are
drawn anew for every task, so each template stands for thousands of tasks. Three splits:

- `train` and `held_out` share templates and never a task: the digest of a task's text alone decides which of the two it
  belongs to, whatever the seed;
- `new_templates` asks for things that no task of the other two asks for.

Everything is a pure function of (split, index, seed). The prompt shows a signature and a sentence, never a test.
"""

import hashlib
import json
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from schemas import FunctionGrader, FunctionTest, Message
from tasks.domain import Domain, Problem

Split = Literal["train", "held_out", "new_templates"]
Kind = Literal["arithmetic", "comparison", "strings", "lists", "compositions"]

KINDS: tuple[Kind, ...] = ("arithmetic", "comparison", "strings", "lists", "compositions")
TESTS_PER_TASK = 8
HELD_OUT_SHARE = 0.2
"""The share of all task texts that `train` never sees."""
SYSTEM_MESSAGE = "Complete the Python function."

_FUNCTION_NAMES = (
    "f", "g", "h", "solve", "compute", "apply", "calculate", "process", "run", "transform", "convert", "evaluate",
    "answer", "make", "derive", "build", "work", "task", "update", "check",
)  # fmt: skip
_INT_NAMES = (("x", "y"), ("n", "m"), ("p", "q"), ("u", "v"), ("r", "t"), ("num", "step"), ("value", "other"))
_STRING_NAMES = ("s", "text", "word", "name", "line", "phrase", "message", "title")
_LIST_NAMES = ("xs", "numbers", "values", "items", "nums", "data", "elements", "lst")
_SUFFIXES = ("!", "?", "ing", "_end", "-ok", "er", "123", "xyz", ".txt", "ab", "ly", "_x", "00", ".py", "ed", "s")
_LETTERS = "abcdefgh"
_MAX_DRAWS = 1000


@dataclass(frozen=True)
class Template:
    """One thing to ask for.

    `sentence` goes on after "returns …"; `expression` is its answer. Both may name the arguments
    ({x}, {y}: integers; {s}: a string; {xs}: a list of integers) and the constants ({k}: 2…12; {m}: 13…40; {j}: 2…4;
    {c}, {d}: two letters; {w}: a short word).
    """

    kind: Kind
    arguments: tuple[Literal["x", "y", "s", "xs"], ...]
    sentence: str
    expression: str


@dataclass(frozen=True)
class FunctionTask:
    """A problem, its judge and its answer. Arguments and expected values are JSON values."""

    kind: Kind
    messages: tuple[Message, ...]
    entry_point: str
    reference: str
    """A correct solution: the source of a Python function named `entry_point`."""
    tests: list[tuple[list[Any], Any]]
    """(arguments, expected value) pairs."""
    metadata: dict[str, Any] = field(default_factory=dict)


TEMPLATES: tuple[Template, ...] = (
    Template("arithmetic", ("x",), "{x} plus {k}", "{x} + {k}"),
    Template("arithmetic", ("x",), "{x} minus {k}", "{x} - {k}"),
    Template("arithmetic", ("x",), "{k} minus {x}", "{k} - {x}"),
    Template("arithmetic", ("x",), "{x} times {k}", "{x} * {k}"),
    Template("arithmetic", ("x",), "{x} squared plus {k}", "{x} ** 2 + {k}"),
    Template("arithmetic", ("x", "y"), "the sum of {x}, {y} and {k}", "{x} + {y} + {k}"),
    Template("arithmetic", ("x", "y"), "{x} times {y} plus {k}", "{x} * {y} + {k}"),
    Template("comparison", ("x",), "True if {x} is greater than {k}, else False", "{x} > {k}"),
    Template("comparison", ("x",), "True if {x} is less than {k}, else False", "{x} < {k}"),
    Template("comparison", ("x",), "True if {x} is at least {k}, else False", "{x} >= {k}"),
    Template("comparison", ("x",), "True if {x} is divisible by {k}, else False", "{x} % {k} == 0"),
    Template("comparison", ("x",), "the larger of {x} and {k}", "max({x}, {k})"),
    Template("comparison", ("x",), "the smaller of {x} and {k}", "min({x}, {k})"),
    Template("comparison", ("x", "y"), "True if {x} plus {y} is greater than {k}, else False", "{x} + {y} > {k}"),
    Template("strings", ("s",), 'the string {s} followed by "{w}"', "{s} + '{w}'"),
    Template("strings", ("s",), '"{w}" followed by the string {s}', "'{w}' + {s}"),
    Template("strings", ("s",), "the string {s} repeated {k} times", "{s} * {k}"),
    Template("strings", ("s",), "the first {j} characters of the string {s}", "{s}[:{j}]"),
    Template("strings", ("s",), "the length of the string {s} plus {k}", "len({s}) + {k}"),
    Template("strings", ("s",), 'the count of "{c}" in the string {s}', "{s}.count('{c}')"),
    Template("strings", ("s",), 'the string {s} with "{c}" replaced by "{d}"', "{s}.replace('{c}', '{d}')"),
    Template("lists", ("xs",), "the sum of the list {xs} plus {k}", "sum({xs}) + {k}"),
    Template("lists", ("xs",), "the length of the list {xs} plus {k}", "len({xs}) + {k}"),
    Template("lists", ("xs",), "the largest number in the list {xs} plus {k}", "max({xs}) + {k}"),
    Template("lists", ("xs",), "the smallest number in the list {xs} plus {k}", "min({xs}) + {k}"),
    Template("lists", ("xs",), "the first {j} numbers of the list {xs}", "{xs}[:{j}]"),
    Template("lists", ("xs",), "the list of each number in {xs} times {k}", "[n * {k} for n in {xs}]"),
    Template("lists", ("xs",), "the list of the numbers in {xs} greater than {k}", "[n for n in {xs} if n > {k}]"),
    Template("compositions", ("x", "y"), "the sum of {x} and {y}, multiplied by {k}", "({x} + {y}) * {k}"),
    Template("compositions", ("x", "y"), "the larger of {x} and {y}, plus {k}", "max({x}, {y}) + {k}"),
    Template("compositions", ("s",), 'the upper case of the string {s}, followed by "{w}"', "{s}.upper() + '{w}'"),
    Template("compositions", ("s",), 'the reverse of the string {s}, followed by "{w}"', "{s}[::-1] + '{w}'"),
    Template("compositions", ("xs",), "the first {j} numbers of the sorted list {xs}", "sorted({xs})[:{j}]"),
    Template("compositions", ("xs",), "the sum of the first {j} numbers of the list {xs}", "sum({xs}[:{j}])"),
    Template("compositions", ("xs",), "the sum of the list {xs}, multiplied by {k}", "sum({xs}) * {k}"),
)
"""What `train` and `held_out` ask for."""

OTHER_TEMPLATES: tuple[Template, ...] = (
    Template("arithmetic", ("x",), "the cube of {x} minus {k}", "{x} ** 3 - {k}"),
    Template("arithmetic", ("x", "y"), "{x} times {y} times {k}", "{x} * {y} * {k}"),
    Template("arithmetic", ("x",), "{x} divided by {k}, rounded down", "{x} // {k}"),
    Template("comparison", ("x",), "True if {x} is between {k} and {m}, else False", "{k} <= {x} <= {m}"),
    Template("comparison", ("x", "y"), "the smaller of {x}, {y} and {k}", "min({x}, {y}, {k})"),
    Template("comparison", ("x",), "the distance between {x} and {k}", "abs({x} - {k})"),
    Template("strings", ("s",), 'True if the string {s} ends with "{c}", else False', "{s}.endswith('{c}')"),
    Template("strings", ("s",), 'the string "{w}" followed by the reversed string {s}', "'{w}' + {s}[::-1]"),
    Template("strings", ("s",), "the string {s} without its first {j} characters", "{s}[{j}:]"),
    Template("lists", ("xs",), "the list {xs} followed by the number {k}", "{xs} + [{k}]"),
    Template("lists", ("xs",), "how often {k} occurs in the list {xs}", "{xs}.count({k})"),
    Template("lists", ("xs",), "a list of the numbers in {xs} divisible by {k}", "[n for n in {xs} if n % {k} == 0]"),
    Template(
        "compositions",
        ("xs",),
        "the largest minus the smallest number of {xs}, plus {k}",
        "max({xs}) - min({xs}) + {k}",
    ),
    Template("compositions", ("x", "y"), "the sum of {x} and {y}, then modulo {k}", "({x} + {y}) % {k}"),
    Template(
        "compositions",
        ("s",),
        'the length of the string {s}, then minus the count of "{c}"',
        "len({s}) - {s}.count('{c}')",
    ),
)
"""What only `new_templates` asks for."""


class Functions(Domain):
    """One split as a domain."""

    stop = ("```\n",)
    """An answer is over with its code block."""

    def __init__(self, name: str, split: Split, held_out: tuple[str, ...] = ()) -> None:
        self.name = name
        self.held_out = held_out
        self._split: Split = split

    def problem(self, index: int, seed: int) -> Problem:
        """Task `index` of the split under `seed`."""
        task = make_task(self._split, index, seed)
        tests = tuple(FunctionTest.of(arguments, expected) for arguments, expected in task.tests)
        return Problem(
            id=f"{self.name}-{index}",
            messages=task.messages,
            grader=FunctionGrader(entry_point=task.entry_point, tests=tests),
            reference=f"```python\n{task.reference}```",
            metadata=task.metadata,
        )


FUNCTIONS = Functions("functions", "train", held_out=("held-out", "new-templates"))
HELD_OUT = Functions("held-out", "held_out")
NEW_TEMPLATES = Functions("new-templates", "new_templates")


def make_task(split: Split, index: int, seed: int) -> FunctionTask:
    """Make task `index` of `split` under `seed`. Kinds take turns, so any run of five indices has one of each."""
    random = Random(f"{seed}/{split}/{index}")
    pool = OTHER_TEMPLATES if split == "new_templates" else TEMPLATES
    kind = KINDS[index % len(KINDS)]
    templates = [template for template in pool if template.kind == kind]
    for _ in range(_MAX_DRAWS):
        template = random.choice(templates)
        constants, arguments = _draw_constants(random), _draw_names(random, template)
        names = {**constants, **arguments}
        entry_point = random.choice(_FUNCTION_NAMES)
        signature = f"{entry_point}({', '.join(arguments.values())})"
        text = f"```python\ndef {signature}:\n    # returns {template.sentence.format(**names)}\n```"
        if split != "new_templates" and _is_held_out(text) != (split == "held_out"):
            continue
        expression = template.expression.format(**names)
        tests = _draw_tests(random, template, constants, list(arguments.values()), expression)
        return FunctionTask(
            kind=kind,
            messages=(Message(role="system", content=SYSTEM_MESSAGE), Message(role="user", content=text)),
            entry_point=entry_point,
            reference=f"def {signature}:\n    return {expression}\n",
            tests=tests,
            metadata={"split": split, "index": index, "seed": seed, "template": template.sentence},
        )
    raise AssertionError(f"no task of {split} in {_MAX_DRAWS} draws")


def _is_held_out(text: str) -> bool:
    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    return int.from_bytes(digest) < HELD_OUT_SHARE * 2**32


def _draw_constants(random: Random) -> dict[str, Any]:
    c, d = random.sample(_LETTERS, 2)
    return {
        "k": random.randint(2, 12), "m": random.randint(13, 40), "j": random.randint(2, 4),
        "c": c, "d": d, "w": random.choice(_SUFFIXES),
    }  # fmt: skip


def _draw_names(random: Random, template: Template) -> dict[str, str]:
    x, y = random.choice(_INT_NAMES)
    names = {"x": x, "y": y, "s": random.choice(_STRING_NAMES), "xs": random.choice(_LIST_NAMES)}
    return {argument: names[argument] for argument in template.arguments}


def _draw_tests(
    random: Random, template: Template, constants: dict[str, Any], parameters: list[str], expression: str
) -> list[tuple[list[Any], Any]]:
    """Draw inputs until neither a constant nor an echo of the first argument passes more than three tests in four."""
    compiled = compile(expression, "<reference>", "eval")  # our own expression, never a model's
    for _ in range(_MAX_DRAWS):
        tests: list[tuple[list[Any], Any]] = []
        for _ in range(TESTS_PER_TASK):
            arguments = [_draw_argument(random, argument, constants) for argument in template.arguments]
            tests.append((arguments, eval(compiled, {}, dict(zip(parameters, arguments, strict=True)))))
        expected = [json.dumps(value) for _, value in tests]
        most_common = max(expected.count(value) for value in expected)
        echoed = sum(json.dumps(arguments[0]) == value for (arguments, _), value in zip(tests, expected, strict=True))
        if max(most_common, echoed) <= 0.75 * TESTS_PER_TASK:
            return tests
    raise AssertionError(f"no telling inputs for {expression!r} in {_MAX_DRAWS} draws")


def _draw_argument(random: Random, argument: str, constants: dict[str, Any]) -> Any:
    """Draw an input of the kind `argument` names, near the task's constants often enough to tell answers apart."""
    k = constants["k"]
    if argument == "s":
        letters = _LETTERS + constants["c"] * 3
        return "".join(random.choice(letters) for _ in range(random.randint(3, 8)))
    if argument == "xs":
        return [random.choice((random.randint(-9, 20), k)) for _ in range(random.randint(3, 7))]
    return random.choice((random.randint(-20, 50), k * random.randint(-3, 5), k + random.randint(-1, 1)))
