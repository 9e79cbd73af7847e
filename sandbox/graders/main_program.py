"""One run of a program as the main one: the answer of a `stdio` test, or a checker."""

from sandbox import claims
from sandbox.graders.common import require_compiled
from sandbox.inside.protocol import EXEC, WORK
from sandbox.jail.jails import Process, Report
from sandbox.jail.session import Session, new_nonce, process_cpu_seconds
from sandbox.limits import RunLimits


async def run_program(
    session: Session,
    limits: RunLimits,
    stdin: bytes,
    arguments: dict[str, bytes] | None = None,
    *,
    int_digits: int = 0,
) -> tuple[Report, bool]:
    """Run a program as the main one: (report, whether it got past its syntax).

    `arguments` are files that it finds beside itself, their names in this order its arguments.
    """
    language = session.language
    contents = {"stdin": stdin, **(arguments or {})}
    names = tuple(arguments or {})
    files = {f"{WORK}/{name}": name for name in names}
    if language.run:
        process = Process(
            kind=EXEC,
            argv=(*session.command(language.run, limits), *names),
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
        int_digits=int_digits,
        cpu_seconds=process_cpu_seconds(limits),
    )
    report = await session.run([process], limits, {**contents, "program": session.program})
    return report, require_compiled(claims.parse(report.result, nonce), report, limits)
