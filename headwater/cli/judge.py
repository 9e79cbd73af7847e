"""`judge` and `cases`: the sandbox by hand, without a broker."""

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.common import Json, console, run
from headwater.cli.measure import Unenforced
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from sandbox.cases.check import CaseResult
    from sandbox.judgement import Judgement
    from schemas import Grader


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Grading")(judge)
    app.command(rich_help_panel="Grading")(cases)


def judge(
    program: Annotated[Path, typer.Argument(metavar="FILE", help="The program to judge.")],
    tests: Annotated[
        Path,
        typer.Option(
            help="A grader (JSON), tests (JSON list or JSONL of {args, expected} or {stdin, stdout}), test_*.py, a "
            "folder of those, or another .py that asserts.",
        ),
    ],
    function: Annotated[
        str | None, typer.Option(help="What tests with `args` call, or `check(candidate)` is given.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Of the program, for lists of tests.", show_default="by its name")
    ] = None,
    json_: Json = False,
    allow_unenforced: Unenforced = None,
) -> None:
    """Run one program in a jail against tests, and print reward and feedback. Exit status 0: every test passed.

    Example: headwater judge add.py --tests tests.json --function add

    Example: headwater judge main.cpp --tests runs.jsonl --json

    Example: headwater judge solution.py --tests test_solution.py
    """
    from headwater.measure.judge import grader_for, read_program
    from sandbox.errors import GraderFault

    grader = grader_for(program, tests, language=language, function=function)
    source = read_program(program)
    try:
        judgement = _run(_judged(source, grader, _allowed(allow_unenforced)))
    except GraderFault as error:
        if json_:
            typer.echo(json.dumps({"reward": None, "fault": str(error)}, ensure_ascii=False))
            raise typer.Exit(1) from None
        raise HeadwaterError(f"could not be graded: {error}") from error
    reward, feedback = _scored(judgement)
    if json_:
        typer.echo(json.dumps(_as_json(judgement, reward, feedback), ensure_ascii=False))
    else:
        _print(judgement, reward, feedback)
    if judgement.kind.value != "accepted":
        raise typer.Exit(1)


def cases(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="With *.jsonl: a case a line.")],
    json_: Json = False,
    at_a_time: Annotated[int, typer.Option("--at-a-time", min=1, help="Cases judged at the same time.")] = 2,
    allow_unenforced: Unenforced = None,
) -> None:
    """Judge a folder of cases: programs with the result that a sandbox must reach, and checks on this host.

    Exit status 1: a case failed, something was not checked, a line is no case (it is refused, the others are judged).

    Example: headwater cases tests/cases/sandbox

    Example: headwater cases tests/cases/sandbox --json | jq 'select(.passed | not)'
    """
    from sandbox.cases.check import BadCase, read

    allowed = _allowed(allow_unenforced)
    if not folder.is_dir():
        raise HeadwaterError(f"{folder}: no such folder")
    try:
        loaded, refused = read(folder)
    except BadCase as error:
        raise HeadwaterError(str(error)) from error

    for error in refused:
        typer.echo(f"refused: {error}", err=True)
    passed = 0

    async def work() -> None:
        from sandbox.cases.check import judge_cases

        nonlocal passed
        async for result in judge_cases(loaded, at_a_time, allowed):
            passed += result.passed
            typer.echo(json.dumps(result.as_json(), ensure_ascii=False) if json_ else _line(result))

    _run(work())
    if not json_:
        words = f", {len(refused)} lines refused" if refused else ""
        typer.echo(f"{len(loaded)} cases: {passed} passed, {len(loaded) - passed} failed{words}")
    if passed < len(loaded) or refused:
        raise typer.Exit(1)


def _allowed(limits: list[str] | None) -> frozenset[str]:
    """The limits that need not be enforced. Raises HeadwaterError for a name that is none."""
    from sandbox.jail.host import ENFORCEABLE

    unknown = sorted(set(limits or ()) - set(ENFORCEABLE))
    if unknown:
        raise HeadwaterError(f"--allow-unenforced {unknown[0]}: it is none of {', '.join(ENFORCEABLE)}")
    return frozenset(limits or ())


def _run[T](work: Coroutine[Any, Any, T]) -> T:
    """Run it; a host that cannot judge is a matter for the person, a grader fault for the caller."""
    from sandbox.errors import SandboxUnavailable

    try:
        return run(work)
    except SandboxUnavailable as error:
        raise HeadwaterError(str(error)) from error


async def _judged(program: bytes, grader: "Grader", allow_unenforced: frozenset[str]) -> "Judgement":
    from sandbox.judge import Judge

    async with Judge(1, ahead=None, allow_unenforced=allow_unenforced) as judge:
        return await judge.judge(program, grader)


def _scored(judgement: "Judgement") -> tuple[float, str]:
    from sandbox.reward_rule import score

    if judgement.reward is not None:
        return judgement.reward, ""
    return score(judgement.kind, judgement.tests, judgement.compile_log)


def _as_json(judgement: "Judgement", reward: float, feedback: str) -> dict[str, Any]:
    import msgspec

    return {
        "reward": reward,
        "verdict": judgement.kind.value,
        "feedback": feedback,
        "components": judgement.components,
        "tests": msgspec.to_builtins(judgement.tests),
        "compile_log": judgement.compile_log,
        "jail_seconds": judgement.jail_seconds,
        "parts": judgement.parts,
    }


def _print(judgement: "Judgement", reward: float, feedback: str) -> None:
    from rich.table import Table

    shown = console()
    if judgement.tests:
        table = Table(box=None)
        for name in ("test", "verdict", "CPU s", "wall s", "memory MB", "exit"):
            table.add_column(name, justify="left" if name in ("test", "verdict") else "right")
        for test in judgement.tests:
            ending = f"signal {test.signal}" if test.signal is not None else test.exit_status
            table.add_row(
                test.name,
                test.kind.value,
                f"{test.cpu_seconds:.3f}",
                f"{test.wall_seconds:.3f}",
                f"{test.peak_memory_bytes / 1e6:.1f}",
                "—" if ending is None else str(ending),
            )
        shown.print(table)
    shown.print(f"reward {reward:+.4f} · {judgement.kind.value}", highlight=False)
    for name, value in judgement.components.items():
        shown.print(f"{name} {value:+.4f}", highlight=False, markup=False)
    if feedback:
        typer.echo(feedback)


def _line(result: "CaseResult") -> str:
    start = f"{'pass' if result.passed else 'FAIL'}  {result.id}  ({result.seconds:.1f} s)"
    if result.passed:
        return start
    reward = f"no reward ({result.fault})" if result.reward is None else f"reward {result.reward}"
    host = "".join(f"; {text}: {outcome}" for text, outcome in result.host.items() if outcome != "pass")
    return (
        f"{start}\n      expected {result.expected}\n"
        f"      seen {reward}, verdict {result.verdict}, tests {'/'.join(result.verdicts) or 'none'}{host}"
    )
