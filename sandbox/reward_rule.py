"""From verdicts to a reward and a feedback text (design §4). Pure: needs no jail and no nsjail."""

from collections.abc import Sequence

from schemas import TestVerdict, VerdictKind

COMPILE_ERROR_REWARD = -1.0
MAX_FEEDBACK_CHARACTERS = 2000
MAX_SHOWN_FAILURES = 3
MAX_FAILURE_CHARACTERS = 500


def score(kind: VerdictKind, tests: Sequence[TestVerdict], compile_log: str) -> tuple[float, str]:
    """Return (reward, feedback). Hidden tests count and never show."""
    if kind is VerdictKind.COMPILE_ERROR:
        return COMPILE_ERROR_REWARD, shorten(compile_log, MAX_FEEDBACK_CHARACTERS) or "The program does not compile."
    passed = [test for test in tests if test.kind is VerdictKind.ACCEPTED]
    if any(test.required and test.kind is not VerdictKind.ACCEPTED for test in tests) or not passed:
        reward = 0.0
    elif len(passed) == len(tests):
        reward = 1.0
    else:
        reward = sum(test.weight for test in passed) / sum(test.weight for test in tests)
    lines = [f"Passed {len(passed)}/{len(tests)} tests."]
    failures = [test for test in tests if test.kind is not VerdictKind.ACCEPTED and not test.hidden]
    for test in failures[:MAX_SHOWN_FAILURES]:
        title = f"{test.name}: {test.kind.value}" if test.name else test.kind.value
        lines.append(shorten(f"{title}: {test.detail}" if test.detail else title, MAX_FAILURE_CHARACTERS))
    return reward, shorten("\n".join(lines), MAX_FEEDBACK_CHARACTERS)


def shorten(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, its middle left out."""
    if len(text) <= limit:
        return text
    mark = "\n…\n" if "\n" in text else " … "
    head = (limit - len(mark)) * 2 // 3
    return text[:head] + mark + text[len(text) - (limit - len(mark) - head) :]
