"""`stdio`: run the program once a test and compare what it prints."""

from sandbox import claims, judgement
from sandbox.graders.checker import open_checker
from sandbox.graders.common import crash, require_compiled, shown, text, verdict
from sandbox.graders.compare import same_output
from sandbox.jail.jails import Process, Report
from sandbox.jail.session import Session, new_nonce, process_cpu_seconds
from sandbox.limits import RunLimits, resolve
from schemas import StdioGrader, TestVerdict, VerdictKind


async def judge_stdio(session: Session, grader: StdioGrader) -> list[TestVerdict]:
    """Run the program once a test and compare what it prints."""
    limits = resolve(grader.limits, session.language.limits)
    checker = await open_checker(session, grader.checker) if grader.checker else None
    verdicts: list[TestVerdict] = []
    for number, test in enumerate(grader.tests, 1):
        report, compiled = await run_program(session, limits, test.stdin.encode())
        kind, detail = judgement.limit_reached(report, limits), ""
        if kind is not None:
            detail = judgement.LIMIT_WORDS[kind]
        elif not judgement.ended_well(report):
            kind, detail = judgement.failed_kind(report), crash(report)
        elif not compiled:
            kind, detail = VerdictKind.RUNTIME_ERROR, "the program did not start"
        elif checker is not None:
            kind, detail = await checker.judge(test, report.stdout)
        elif same_output(report.stdout, test.stdout):
            kind = VerdictKind.ACCEPTED
        else:
            kind = VerdictKind.WRONG_ANSWER
            detail = f"input {shown(test.stdin)}, expected {shown(test.stdout)}, got {shown(text(report.stdout))}"
        verdicts.append(verdict(test, number, kind, report, detail))
    return verdicts


async def run_program(
    session: Session,
    limits: RunLimits,
    stdin: bytes,
    arguments: dict[str, bytes] | None = None,
) -> tuple[Report, bool]:
    """Run a program as the main one: (report, whether it got past its syntax).

    `arguments` are files that it finds beside itself, their names in this order its arguments.
    """
    language = session.language
    contents = {"stdin": stdin, **(arguments or {})}
    names = tuple(arguments or {})
    files = {f"/tmp/work/{name}": name for name in names}
    if language.run:
        process = Process(
            kind="exec",
            argv=(*session.toolchain.command(language.run, limits), *names),
            env=session.environment,
            stdin="stdin",
            passed=names,
            files=files,
            cpu_seconds=process_cpu_seconds(limits),
        )
        return await session.run([process], limits, contents), True
    nonce = new_nonce()
    process = Process(
        kind="main",
        env=session.environment,
        stdin="stdin",
        passed=("program", "result", *names),
        argv=names,
        files=files,
        nonce=nonce,
        cpu_seconds=process_cpu_seconds(limits),
    )
    report = await session.run([process], limits, {**contents, "program": session.program})
    return report, require_compiled(claims.parse(report.result, nonce), report, limits)
