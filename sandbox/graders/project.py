"""`project`: the answer onto a tree of files, a build command, a test command with a line for every test.

Test code and answer share processes here, for any language and any test framework: an answer that knows
every test's id can print the lines of all and leave, and one that takes the test command over can imitate
it. What holds: after the build the test files are put in, and what steers test tools is as the task has
it; the tree is read-only while the tests run; no line counts unless every expected test is reported once. With
`secret` a line counts only with a word that the harness read before it loaded the answer, and that cannot
be read again: then printing is not enough, and the answer must search the harness's memory.
"""

import json
from collections import Counter
from collections.abc import Sequence

from sandbox import judgement
from sandbox.errors import GraderFault
from sandbox.graders.common import PlainTest, crash, verdict
from sandbox.jails import Process, Report
from sandbox.languages import BUILD
from sandbox.limits import COMPILE, RunLimits, resolve
from sandbox.patches import STEERS_TESTS, BadAnswer, files_of, steers_tests
from sandbox.scoring import shorten
from sandbox.session import MAX_LOG_CHARACTERS, CompileError, Session, new_nonce, process_cpu_seconds
from schemas import NamedTest, ProjectGrader, TestVerdict, VerdictKind


async def judge_project(session: Session, grader: ProjectGrader) -> list[TestVerdict]:
    """Unpack, build, unpack the test files, run the tests once."""
    try:
        tree = files_of(session.program.decode("utf-8"), grader.files, grader.target)
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
    await unpack_tests(session, grader, tree)
    limits = resolve(grader.limits, session.language.limits)
    word = new_nonce() if grader.secret else ""
    report = await command(session, grader.test, limits, word=word)
    return [_verdict(grader, test, number, report, limits, word) for number, test in enumerate(grader.tests, 1)]


async def unpack_tests(session: Session, grader: ProjectGrader, tree: dict[str, str]) -> None:
    """Put the test files in, and what steers test tools back as it was before the build ran code of the answer's."""
    steering = {path: text for path, text in tree.items() if any(map(steers_tests, path.split("/")))}
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
    """Run a shell command of the task's in the tree, with a secret word (if there is one) to read on its stdin."""
    process = Process(
        kind="exec",
        stdin="word" if word else "",
        argv=("/usr/bin/sh", "-c", line),
        env=session.environment,
        cwd=BUILD,
        cpu_seconds=process_cpu_seconds(limits),
    )
    once = {"word": f"{word}\n".encode()} if word else None
    report = await session.run([process], limits, {}, once=once, build_writable=building)
    if report.failure:
        raise GraderFault("a project's commands need a shell, and there is none in the jail of its language")
    return report


def _verdict(
    grader: ProjectGrader, test: NamedTest, number: int, report: Report, limits: RunLimits, word: str
) -> TestVerdict:
    ok, bad = (f"PASS {word} ", f"FAIL {word} ") if word else ("PASS ", "FAIL ")
    lines = Counter(report.stdout.decode("utf-8", "replace").split("\n"))
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
        kind, words = judgement.failed_kind(report), "not reported once by a run that ended well: " + crash(report)
    about = PlainTest(test.id, grader.hidden or test.hidden, test.required, test.weight)
    return verdict(about, number, kind, report, words)
