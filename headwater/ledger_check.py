"""`headwater ledger check`: every group that a log admitted stands in the ledger once."""

from dataclasses import dataclass

from headwater.positions import newest_position
from headwater.reading import read_topics
from headwater.run_directory import RunDirectory
from learner.ledger import LedgerReport, check_ledger, read_ledger
from schemas import Generation, SchemaError
from schemas.codec import decode
from schemas.topics import GENERATIONS
from wire.settings import KafkaSettings
from wire.topics import read_log_id


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

    A log that is gone with its bundled broker can be checked only as far as the checkpoint knows it. Groups of a run
    that still goes on have not all ended: they are counted as missing.
    """
    lines = read_ledger(directory.ledger) if directory.ledger.exists() else []
    position = newest_position(directory)
    admitted: dict[str, set[int]] = {}
    compared: list[str] = []
    problems: list[str] = []
    if position is not None:
        compared.append(f"the newest checkpoint (version {position.version}, {position.ledger_lines} ledger lines)")
        if position.ledger_lines > len(lines):
            problems.append(f"the checkpoint counts on {position.ledger_lines} lines, the ledger has {len(lines)}")
        if position.admitted is not None:
            admitted[position.log_id] = set(range(position.admitted))
            compared.append(f"the {position.admitted} groups that log {position.log_id} admitted in all")
        else:
            numbers = position.ended
            admitted[position.log_id] = set(range(numbers.low)) | numbers.above
            compared.append(f"the {len(admitted[position.log_id])} groups of log {position.log_id} ended by then")
    if settings is not None:
        log_id = await read_log_id(settings)
        admitted[log_id] = await _admitted_on(settings, directory.run_id())
        compared.append(f"the {len(admitted[log_id])} groups on the log {log_id} at {settings.bootstrap}")
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


async def _admitted_on(settings: KafkaSettings, run_id: str) -> set[int]:
    numbers: set[int] = set()
    async for record in read_topics(settings, [GENERATIONS.name]):
        try:
            event = decode(record.value, GENERATIONS)
        except SchemaError:
            continue
        if isinstance(event, Generation) and event.run_id == run_id and event.admission_number is not None:
            numbers.add(event.admission_number)
    return numbers


def _some(values: list[int] | list[str]) -> str:
    shown = ", ".join(str(value) for value in values[:10])
    return shown + (f" and {len(values) - 10} more" if len(values) > 10 else "")
