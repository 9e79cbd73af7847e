"""`project`: the answer onto a tree of files, a build command, a test command with a line for every test.

The test command has a user, a folder and a pipe for its report of its own, and asks the answer's side to
run commands in the tree (`inside/harness.py`): it holds no code of the answer's, the answer none of the
tests, and nothing that the answer prints is a report. Where the task says `in_process` the two share
processes, and what holds is less: what steers test tools is as the task has it, the tree is read-only, and
a line counts only with a word that the command read before it loaded the answer. In both, no line counts
unless every expected test is reported once.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence

from sandbox import judgement
from sandbox.errors import GraderFault, JailLost
from sandbox.graders.common import PlainTest, crash, text, verdict
from sandbox.graders.patches import STEERS_TESTS, BadAnswer, files_of, inside, steers_tests
from sandbox.inside.protocol import BUILD, EXEC, TESTER_UID, TESTS, UNUSABLE
from sandbox.jail.jails import Process, Report
from sandbox.jail.session import MAX_LOG_CHARACTERS, CompileError, Session, lost, new_nonce, process_cpu_seconds
from sandbox.limits import COMPILE, RunLimits, resolve
from sandbox.reward_rule import shorten
from schemas import NamedTest, ProjectGrader, TestVerdict, VerdictKind

MAX_REPORT_BYTES = 4 << 20


async def judge_project(session: Session, grader: ProjectGrader) -> list[TestVerdict]:
    """Unpack, build, unpack the test files, run the tests once. In a new jail where one is lost; twice: a crash."""
    odd = next((path for path in (*grader.files, *grader.test_files) if not inside(path)), None)
    if odd is not None:
        raise GraderFault(f"the task has a file that is not inside its tree: {odd[:100]!r}")
    try:
        return await _judged(session, grader)
    except JailLost:
        pass  # what was built is gone with it
    try:
        return await _judged(session, grader)
    except JailLost as error:
        report = lost(out_of_memory=error.out_of_memory)
        limits = resolve(grader.limits, session.language.limits)
        return [_verdict(grader, test, number, report, limits, "") for number, test in enumerate(grader.tests, 1)]


async def _judged(session: Session, grader: ProjectGrader) -> list[TestVerdict]:
    try:
        answer = session.program.decode("utf-8")
        # in a thread: an answer may make it long
        tree = await asyncio.to_thread(files_of, answer, grader.files, grader.target, may_steer=not grader.in_process)
    except (BadAnswer, UnicodeDecodeError) as error:
        raise CompileError(str(error)) from None
    await unpack(session, tree)
    if grader.build is not None:
        report = await command(session, grader.build, COMPILE, building=True)
        if not judgement.ended_well(report):
            limit = judgement.limit_reached(report, COMPILE)
            words = f"The build {judgement.LIMIT_WORDS[limit]}.\n" if limit else ""
            log = (report.stdout + report.stderr).decode("utf-8", "replace").replace(f"{BUILD}/", "")
            raise CompileError(shorten(words + log.strip(), MAX_LOG_CHARACTERS) or judgement.ending(report))
    limits = resolve(grader.limits, session.language.limits)
    word = ""
    if grader.in_process:
        word = new_nonce()
        await unpack_tests(session, grader)
        report = await command(session, grader.test, limits, word=word)
    else:
        report = await apart(session, grader, limits)
    return [_verdict(grader, test, number, report, limits, word) for number, test in enumerate(grader.tests, 1)]


async def apart(session: Session, grader: ProjectGrader, limits: RunLimits) -> Report:
    """Run the test command beside the answer's tree."""
    seconds = process_cpu_seconds(limits)
    environment = session.environment
    names = ("result", "link", "tests", "command")
    processes = [
        Process(kind="harness", uid=TESTER_UID, env=environment, passed=names, cwd=TESTS, cpu_seconds=seconds),
        Process(kind="starter", env=environment, passed=("link:peer",), cwd=BUILD, cpu_seconds=seconds),
    ]
    contents = {"tests": json.dumps(grader.test_files).encode(), "command": grader.test.encode()}
    report = await session.run(processes, limits, contents, result_bytes=MAX_REPORT_BYTES)
    if report.result.startswith(UNUSABLE.encode()):
        raise GraderFault(f"the task's test files cannot be put up: {text(report.result)[len(UNUSABLE) :].strip()}")
    return report


async def unpack_tests(session: Session, grader: ProjectGrader) -> None:
    """Put the test files in, and what steers test tools back as the task has it."""
    steering = {path: text for path, text in grader.files.items() if any(map(steers_tests, path.split("/")))}
    kept = steering | grader.test_files
    folders = {"/".join(parts[:end]) for parts in (path.split("/") for path in kept) for end in range(1, len(parts))}
    packages = {"/".join(path.split("/")[:end]) for path in grader.files for end in range(1, path.count("/") + 1)}
    hide = tuple(path for path in grader.test_files if path.removesuffix(".py") not in packages)
    await unpack(session, kept, sweep=STEERS_TESTS, keep=(*kept, *folders), hide=hide)


async def unpack(
    session: Session,
    files: dict[str, str],
    *,
    sweep: Sequence[str] = (),
    keep: Sequence[str] = (),
    hide: Sequence[str] = (),
) -> None:
    """Write files below `/build`. First goes what is named as `sweep` says (but `keep`), and what hides `hide`."""
    process = Process(
        kind="unpack", env=session.environment, passed=("tree",), cpu_seconds=process_cpu_seconds(COMPILE)
    )
    tree = {"files": files, "sweep": sweep, "keep": keep, "hide": hide}
    report = await session.run([process], COMPILE, {"tree": json.dumps(tree).encode()}, build_writable=True)
    if not judgement.ended_well(report):
        limit = judgement.limit_reached(report, COMPILE)
        if limit is None and report.stderr:
            raise CompileError("the files of the answer cannot be written: " + crash(report))
        raise CompileError("the files of the answer are too large")


async def command(session: Session, line: str, limits: RunLimits, *, building: bool = False, word: str = "") -> Report:
    """Run a shell command of the task's in the tree, with a word to read on its stdin, or without a report."""
    process = Process(
        kind=EXEC,
        stdin="word" if word else "",
        argv=("/usr/bin/sh", "-c", line),
        env=session.environment,
        cwd=BUILD,
        passed=("result",) if word else (),
        cpu_seconds=process_cpu_seconds(limits),
    )
    once = {"word": f"{word}\n".encode()} if word else None
    report = await session.run([process], limits, {}, once=once, result_bytes=MAX_REPORT_BYTES, build_writable=building)
    if report.failure:
        raise GraderFault("a project's commands need a shell, and there is none in the jail of its language")
    return report


def _verdict(
    grader: ProjectGrader, test: NamedTest, number: int, report: Report, limits: RunLimits, word: str
) -> TestVerdict:
    ok, bad = (f"PASS {word} ", f"FAIL {word} ") if word else ("PASS ", "FAIL ")
    lines = Counter(report.result.decode("utf-8", "replace").split("\n"))
    passed, failed = lines[f"{ok}{test.id}"], lines[f"{bad}{test.id}"]
    any_failed = any(line.startswith(bad) for line in lines)
    missing = [one for one in grader.tests if lines[f"{ok}{one.id}"] + lines[f"{bad}{one.id}"] != 1]
    limit = judgement.limit_reached(report, limits)
    if failed:
        kind, words = VerdictKind.WRONG_ANSWER, ""
    elif passed == 1 and not missing and (any_failed or judgement.ended_well(report)):
        kind, words = VerdictKind.ACCEPTED, ""
    elif passed == 1 and judgement.ended_well(report):
        kind, words = VerdictKind.RUNTIME_ERROR, f"does not count: {len(missing)} of the tests were not reported once"
    elif limit is not None:
        kind, words = limit, judgement.LIMIT_WORDS[limit]
    else:
        # what the test command said may be about a hidden test
        end = judgement.ending(report) if grader.hidden or any(one.hidden for one in grader.tests) else crash(report)
        kind, words = judgement.failed_kind(report), "not reported once by a run that ended well: " + end
    about = PlainTest(test.id, grader.hidden or test.hidden, test.required, test.weight)
    return verdict(about, number, kind, report, words)
