"""How an answer is judged: one tagged struct a grader, with its tests inside.

A test marked `hidden` is judged like any other and never shown in feedback. A `required` test that
fails makes the reward 0.0. Arguments and expected values are kept as raw JSON text, so that whole
numbers of any size reach the sandbox unchanged.
"""

import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from schemas.base import UserStruct

Positive = Annotated[float, Meta(gt=0)]
Tolerance = Annotated[float, Meta(ge=0)]
PositiveInt = Annotated[int, Meta(ge=1)]
Json = msgspec.Raw
"""Any JSON value, as its text."""


class Limits(UserStruct, frozen=True, kw_only=True):
    """What one test may use; None is the language's default. The sandbox caps them at the host's."""

    cpu_seconds: Positive | None = None
    wall_seconds: Positive | None = None
    memory_bytes: PositiveInt | None = None
    processes: PositiveInt | None = None
    """Tasks: processes and threads together."""
    output_bytes: PositiveInt | None = None
    """Each of standard output and standard error."""
    disk_bytes: PositiveInt | None = None


class FunctionTest(UserStruct, frozen=True, kw_only=True):
    """One call: `entry_point(*args)` must return `expected` (compared outside the jail, by structure)."""

    args: Json
    """A JSON list."""
    expected: Json
    name: str = ""
    hidden: bool = False
    weight: Positive = 1.0
    required: bool = False

    @classmethod
    def of(cls, args: list[Any], expected: Any, **rest: Any) -> "FunctionTest":
        """Build a test from Python values (JSON-able ones)."""
        return cls(args=_raw(args), expected=_raw(expected), **rest)


class StdioTest(UserStruct, frozen=True, kw_only=True):
    """One run of the main program: `stdin` in, `stdout` expected (compared outside the jail)."""

    stdin: str = ""
    stdout: str
    name: str = ""
    hidden: bool = False
    weight: Positive = 1.0
    required: bool = False


CompareValues = Literal["exact", "any_order", "any_order_deep", "set", "one_of"]
"""exact: as `sandbox/README.md` says, numbers to the tolerance; any_order: a list's items in any order;
any_order_deep: those of lists within it as well; set: and repeated ones count once; one_of: `expected` lists all
values that are right."""
ExtractRule = Literal["last", "first", "longest", "entry_point", "whole"]
"""Which block of an answer is the program: `sandbox/README.md` has the rules. `whole`: the answer as it is."""


class ExtractPattern(UserStruct, frozen=True, kw_only=True):
    """The last match of a regular expression is the program: its first group, or all of it."""

    pattern: str


class Checker(UserStruct, frozen=True, kw_only=True):
    """A program that says whether an output is right: exit status 0 means yes.

    Its arguments are the names of three files: the test's input, the output to judge, the expected
    output. It runs in a jail of its own.
    """

    program: str
    language: str = "python"
    limits: Limits = Limits()


class FunctionGrader(UserStruct, frozen=True, kw_only=True, tag_field="kind", tag="function"):
    """Call `entry_point` with each test's arguments."""

    entry_point: str
    """`name`, or `Class.method` of a new instance for each test."""
    tests: Annotated[tuple[FunctionTest, ...], Meta(min_length=1)]
    language: str = "python"
    limits: Limits = Limits()
    compare: CompareValues = "exact"
    tolerance: Tolerance | None = None
    """Of numbers with a point, absolute or relative to the expected one; None: 1e-6."""
    checker: Checker | None = None
    """In place of `compare`: its files hold arguments, value and `expected` as JSON."""
    returns: Annotated[str, Meta(pattern=r"^(value|argument \d)$")] | None = None
    """What is compared: the value, or what `argument 0` has become. None: the value; but where calls return None and
    change their first argument to what is expected, that."""
    int_keys: bool | None = None
    """Whether objects in the arguments whose keys all are whole numbers have such keys; None: right is what is right
    either way."""
    int_digits: Annotated[int, Meta(ge=0)] = 0
    """Python's limit on the digits of a whole number; 0: none. (Python's own is 4300.)"""
    prelude: str | None = None
    """What the answer may use without importing it: `none`, `typing`, `leetcode` (typing, `math`, `deque`, …,
    `ListNode`, `TreeNode`), or a Python program to run before it. None: `leetcode` for methods of `Solution`, else
    `typing`. Arguments and results annotated as ListNode or TreeNode are lists in the tests."""
    packages: tuple[str, ...] = ()
    """Third-party packages that the program may import, as `headwater sandbox packages` has them."""
    extract: ExtractRule | ExtractPattern | None = None
    """None: the block that defines what the tests call, else the last."""


class StdioGrader(UserStruct, frozen=True, kw_only=True, tag_field="kind", tag="stdio"):
    """Run the answer as a program once a test."""

    tests: Annotated[tuple[StdioTest, ...], Meta(min_length=1)]
    language: str = "python"
    limits: Limits = Limits()
    checker: Checker | None = None
    """Where several outputs are right; None: the output must equal `stdout`."""
    packages: tuple[str, ...] = ()
    """Third-party packages that the program may import, as `headwater sandbox packages` has them."""
    extract: ExtractRule | ExtractPattern | None = None
    """None: the last block."""
    int_digits: Annotated[int, Meta(ge=0)] = 0
    """Python's limit on the digits of a whole number; 0: none."""
    standard: Annotated[str, Meta(pattern=r"^[a-z0-9+]{2,12}$")] | None = None
    """Of the language: `gnu++17`, `c++20`, `gnu11`, Rust's `2018`; None: its usual one (`gnu++20`, `gnu17`, `2021`)."""


class CheckGrader(UserStruct, frozen=True, kw_only=True, tag_field="kind", tag="check"):
    """Run `program` after the answer and call its `check(entry_point)`: one test (HumanEval's form)."""

    entry_point: str
    program: str
    check_function: str = "check"
    language: str = "python"
    limits: Limits = Limits()
    prelude: str | None = None
    """As of `function`; None: typing's names, and those that `program` imports from Python's library."""
    in_process: bool = False
    """Run the tests in the answer's process, for what two processes cannot show. An answer can then forge a pass:
    only for answers that are not trained on it, or that somebody reads."""
    packages: tuple[str, ...] = ()
    """Third-party packages that the program may import, as `headwater sandbox packages` has them."""
    extract: ExtractRule | ExtractPattern | None = None
    """None: the block that defines what the tests call, else the last."""


class NamedTest(UserStruct, frozen=True, kw_only=True):
    """What is special about one test of a test file, by its id: `file.py::Class::method`."""

    id: str
    hidden: bool = False
    weight: Positive = 1.0
    required: bool = False


class UnittestGrader(UserStruct, frozen=True, kw_only=True, tag_field="kind", tag="unittest"):
    """Run the task's test files on the answer, saved as `solution`; a result for each test method."""

    files: Annotated[dict[str, str], Meta(min_length=1)]
    """Test files and what they need, by name. Those named `test_*.py` or `*_test.py` hold tests."""
    solution: str = "solution.py"
    tests: tuple[NamedTest, ...] = ()
    """Only for tests that are not visible, of weight 1.0, or required: by default all are plain."""
    hidden: bool = False
    """Every test is hidden."""
    language: str = "python"
    limits: Limits = Limits()
    """For the whole run of the files."""
    in_process: bool = False
    """Run the tests in the answer's process, for what two processes cannot show. An answer can then forge a pass:
    only for answers that are not trained on it, or that somebody reads."""
    packages: tuple[str, ...] = ()
    """Third-party packages that the program may import, as `headwater sandbox packages` has them."""
    extract: ExtractRule | ExtractPattern | None = None
    """None: the block that defines what the tests call, else the last."""


class PythonGrader(UserStruct, frozen=True, kw_only=True, tag_field="kind", tag="python"):
    """The user's own reward function: `def reward(completion, task) -> float | dict[str, float]`.

    Functions written for TRL (`completions, **columns`), verl (`compute_score(data_source, solution_str, ground_truth,
    extra_info)`) and verifiers (`completion, answer, …`; a rubric, or a list of functions) run as they are: their
    parameters tell, and `task` holds the columns.

    It runs in a jail and gets the answer as text; the answer itself does not run. A dict holds named
    components and must hold `reward`. What it raises is a failure to grade, not a reward.
    """

    program: str
    task: dict[str, Any] = {}
    """Whatever the function needs to know, given to it as its second argument."""
    function: str = "reward"
    language: str = "python"
    limits: Limits = Limits()
    packages: tuple[str, ...] = ()
    """Third-party packages that the program may import, as `headwater sandbox packages` has them."""


class ProjectGrader(UserStruct, frozen=True, kw_only=True, tag_field="kind", tag="project"):
    """Put the answer onto a tree of files, build it, run a test command that reports test by test.

    The answer is a unified diff (it begins with `diff --git` or `--- `), a JSON object of whole files by
    path, or, where `target` is set, the text of that one file.

    The test command is a shell command, run in a folder of `test_files` that the answer cannot read, by a
    user who cannot read the answer's tree. It starts the answer with `answer COMMAND ARGUMENT...`, which
    runs the command in that tree (`answer -i …`: with the caller's standard input), and reports on descriptor
    3 with one line a test: `if [ "$(answer ./add 1 2)" = 3 ]; then echo PASS adds >&3; else echo FAIL adds >&3; fi`.
    """

    files: dict[str, str]
    test_files: dict[str, str] = {}
    target: str | None = None
    build: str | None = None
    """A shell command; if it fails, the answer does not compile."""
    test: str
    tests: Annotated[tuple[NamedTest, ...], Meta(min_length=1)]
    """Every test that must be reported, as passed or as failed; where one is not, none has passed."""
    in_process: bool = False
    """For test tools that load the answer into their own process (a repository's pytest, `go test`). The test
    command then runs in the tree, with `test_files` over it, as the answer's user; it reads a word from
    standard input, once, before it loads the answer, and reports `PASS word id` or `FAIL word id`. An answer
    that looks for the word in the tool's variables or memory can forge a pass: only for answers that are not
    trained on it, or that somebody reads."""
    hidden: bool = False
    language: str = "python"
    limits: Limits = Limits()
    """For the whole run of the test command."""
    extract: ExtractRule | ExtractPattern | None = None
    """None: the last block."""


class ExactGrader(UserStruct, frozen=True, kw_only=True, tag_field="kind", tag="exact"):
    """Compare text: the trimmed last line, or what `pattern` finds, with `answer`: 1.0 or 0.0.

    Only what stands after the answer's last `</think>` is looked at.
    """

    answer: str
    or_answers: tuple[str, ...] = ()
    """Others that are right as well."""
    pattern: str | None = None
    """A regular expression; its first group that takes part in the match, or all of it, is the answer."""
    match: Literal["last", "first"] = "last"
    """Which match of the pattern counts."""
    compare: Literal["text", "number", "choice", "math"] = "text"
    """text: the same characters; number: the same number however written (`1,000`, `3/4`, `50%`), to `tolerance`;
    choice: the same letter of a multiple choice (`B`, `(b)`, `B.`); math: the same by math-verify.
    All but text: of the last `\\boxed` where there is no pattern. The sandbox judges `math`, unless the characters are
    the same."""
    tolerance: Tolerance | None = None
    """Absolute, or relative to the answer; None: 1e-6."""


class ExternalGrader(UserStruct, frozen=True, kw_only=True, tag_field="kind", tag="external"):
    """A program of the user's, in any language: it reads `executions.<name>` and writes `verdicts`.

    It gets the whole answer as `program`. `deploy/examples/external_grader.py` is one.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
    task: dict[str, Any] = {}
    """Whatever the program needs to know."""


Grader = (
    FunctionGrader
    | StdioGrader
    | CheckGrader
    | UnittestGrader
    | ProjectGrader
    | PythonGrader
    | ExactGrader
    | ExternalGrader
)


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value, allow_nan=False).encode())
