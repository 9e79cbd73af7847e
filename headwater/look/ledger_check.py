"""`headwater ledger check`: every group that a log admitted stands in the ledger once."""

import asyncio
from dataclasses import dataclass

from headwater.files.positions import newest_position, stored_of
from headwater.files.run_directory import RunDirectory
from headwater.look.status import admitted_numbers, newest_progress
from learner.book.ledger import LedgerReport, check_ledger, read_ledger
from wire.kafka.settings import KafkaSettings
from wire.kafka.topics import read_log_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerVerdict:
    """What was found, and against what."""

    report: LedgerReport
    compared: tuple[str, ...]
    """In words: the logs and positions that the ledger was held against."""
    problems: tuple[str, ...]
    """One line each; empty: all is well."""


async def check_run(directory: RunDirectory, settings: KafkaSettings | None) -> LedgerVerdict:
    """Hold the ledger against the checkpoint and, with settings, against the log there.

    A log that is gone with its broker can be checked only as far as the checkpoint knows it. Of a run that
    still goes on, what the learner has told as ended must be in the ledger; the rest is outstanding.
    """
    # the log before the ledger: what ends between the two reads is then a line more, never one too few
    on_log = await _admitted_on(settings, directory.run_id()) if settings is not None else None
    position = newest_position(directory)
    lines = read_ledger(directory.ledger) if directory.ledger.exists() else []
    compared: list[str] = []
    stored = stored_of(directory)
    if stored is not None and position is not None and len(lines) < position.ledger_lines:
        lines, on_log = await asyncio.to_thread(stored.newest_ledger), None
        compared.append("the ledger in the newest checkpoint: the learner writes its own on another machine")
    in_ledger: dict[str, set[int]] = {}
    for line in lines:
        in_ledger.setdefault(line.log_id, set()).add(line.admission_number)
    admitted: dict[str, set[int]] = {}
    problems: list[str] = []
    if position is not None:
        compared.append(f"the newest checkpoint (version {position.version}, {position.ledger_lines} ledger lines)")
        if position.ledger_lines > len(lines):
            problems.append(f"the checkpoint counts on {position.ledger_lines} lines, the ledger has {len(lines)}")
        numbers = position.ended
        ended = set(range(numbers.low)) | numbers.above
        if position.admitted is not None:
            admitted[position.log_id] = set(range(position.admitted))
            compared.append(f"the {position.admitted} groups that log {position.log_id} admitted in all")
        else:
            # lines beyond the checkpoint are there until a resume rolls them back
            admitted[position.log_id] = ended | in_ledger.get(position.log_id, set())
            compared.append(f"the {len(ended)} groups of log {position.log_id} that had ended by then")
    if on_log is not None:
        assert settings is not None
        log_id, numbers, ended = on_log
        admitted[log_id] = ended | (numbers & in_ledger.get(log_id, set()))
        outstanding = len(numbers - ended)
        compared.append(
            f"the {len(numbers)} groups on log {log_id} at {settings.bootstrap}"
            + (f", of which {outstanding} were under way" if outstanding else "")
        )
    return verdict(check_ledger(lines, admitted), tuple(compared), tuple(problems))


def verdict(report: LedgerReport, compared: tuple[str, ...], problems: tuple[str, ...] = ()) -> LedgerVerdict:
    """The report's findings in words."""
    found = list(problems)
    for log, numbers in report.missing.items():
        found.append(f"log {log}: admitted and not in the ledger: {_some(numbers)}")
    for log, numbers in report.repeated.items():
        found.append(f"log {log}: in the ledger more than once: {_some(numbers)}")
    for log, numbers in report.unknown.items():
        found.append(f"log {log}: in the ledger and never admitted: {_some(numbers)}")
    if report.trained_twice:
        found.append(f"trained more than once: groups {_some(report.trained_twice)}")
    return LedgerVerdict(report=report, compared=compared, problems=tuple(found))


async def _admitted_on(settings: KafkaSettings, run_id: str) -> tuple[str, set[int], set[int]]:
    """Log id, every number admitted there for this run, and those that must be in the ledger by now."""
    log_id = await read_log_id(settings)
    progress = await newest_progress(settings)
    numbers = await admitted_numbers(settings, run_id)
    if progress is None or progress.log_id != log_id or progress.run_id != run_id:
        return log_id, numbers, set()
    if progress.finished:
        return log_id, numbers, numbers
    return log_id, numbers, set(range(progress.ended_low)) | set(progress.ended_above)


def _some(values: list[int] | list[str]) -> str:
    shown = ", ".join(str(value) for value in values[:10])
    return shown + (f" and {len(values) - 10} more" if len(values) > 10 else "")
