"""`python`: the user's own reward function, called in a jail with the answer as text.

The function is trusted to mean well and to be wrong: it runs confined like any program, and what it
raises, or a limit that it runs into, is a failure to grade (invariant 7), never a reward.
"""

import json
import math
from collections.abc import Sequence
from typing import Any, cast

from sandbox import claims, judgement
from sandbox.errors import GraderFault
from sandbox.graders.common import crash, message, require_compiled, sendable, shown_value
from sandbox.inside.values import decode
from sandbox.jail.jails import Process, Report
from sandbox.jail.session import CompileError, Session, new_nonce, process_cpu_seconds
from sandbox.judgement import Judgement
from sandbox.limits import RunLimits, resolve
from schemas import PythonGrader, VerdictKind

RESULT_BYTES = 64 * 1024
MAX_COMPONENTS = 100


async def judge_reward(session: Session, grader: PythonGrader) -> Judgement:
    """Call the function once; `session` is of the answer and is not opened."""
    if grader.language != "python":
        raise GraderFault(f"a reward function is Python, not {grader.language}")
    arguments = [session.program.decode("utf-8", "surrogatepass"), grader.task]
    limits = resolve(grader.limits, session.language.limits)
    report, claimed = await call_own(
        session, grader.program, "reward", grader.function, arguments, limits, grader.packages
    )
    limit = judgement.limit_reached(report, limits)
    if limit is not None:
        raise GraderFault(f"the reward function {judgement.LIMIT_WORDS[limit]}")
    if not claimed.valid or set(claimed.bodies) != {"value"}:
        words = next((message(body) for name, body in claimed.bodies.items() if name != "value"), "") or crash(report)
        raise GraderFault(f"the reward function failed: {words}")
    try:
        value = decode(claimed.bodies["value"])
    except (ValueError, TypeError, OverflowError) as error:
        raise GraderFault(f"the reward function gave no plain value: {error}"[:300]) from error
    reward, components = read(value)
    return Judgement(VerdictKind.ACCEPTED, (), "", reward=reward, components=components)


async def call_own(
    session: Session,
    program: str,
    kind: str,
    function: str,
    arguments: list[Any],
    limits: RunLimits,
    packages: Sequence[str] = (),
) -> tuple[Report, claims.Claims]:
    """Call a function of the task's, or of ours, in a jail of its own. GraderFault if it does not compile."""
    own = await session.another("python", program.encode(), tuple(packages))
    nonce = new_nonce()
    process = Process(
        kind=kind,
        env=own.environment,
        passed=("program", "payload", "result"),
        nonce=nonce,
        entry_point=function,
        result_bytes=RESULT_BYTES,
        cpu_seconds=process_cpu_seconds(limits),
        returns="value",
    )
    contents = {"program": own.program, "payload": json.dumps(arguments).encode()}
    report = await own.run([process], limits, contents, result_bytes=RESULT_BYTES + 4096)
    claimed = claims.parse(report.result, nonce)
    try:
        require_compiled(claimed, report, limits)
    except CompileError as error:
        raise GraderFault(f"the reward function does not compile: {error}") from error
    return report, claimed


def read(value: Any) -> tuple[float, dict[str, float]]:
    """Take a reward, or named components with one named `reward`; GraderFault for anything else."""
    if not isinstance(value, dict):
        return number(value, "the reward"), {}
    parts = cast(dict[Any, Any], value)
    if "reward" not in parts or len(parts) > MAX_COMPONENTS or not all(isinstance(name, str) for name in parts):
        raise GraderFault(f"the reward function's dict needs `reward` and at most {MAX_COMPONENTS} named numbers")
    components = {sendable(str(name)): number(part, str(name)) for name, part in parts.items()}
    return components.pop("reward"), components


def number(value: Any, what: str) -> float:
    """Take a finite number."""
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass  # a whole number that no float holds
    words = f"the reward function gave no finite number for {what[:100]}: {shown_value(value)}"
    raise GraderFault(sendable(words))
