"""`ledger.jsonl`: one line an ended group, in the order ended; and the check that none is missing or twice.

The file is written by one learner at a time. A resume puts the lines that the checkpoint does not know into
`ledger.rolled-back.jsonl` and gives the ledger a new file, so that a learner that is still alive writes into the
old one, which no longer has a name.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from learner.book.feed import Ended
from learner.book.incarnation import check_newest
from learner.durable import fsync_path
from learner.errors import LedgerDamaged
from schemas import Outcome

LEDGER = "ledger.jsonl"
ROLLED_BACK = "ledger.rolled-back.jsonl"


class Ledger:
    """The open ledger of one incarnation."""

    def __init__(self, run_directory: Path, checkpoints: Path, incarnation: int) -> None:
        self._checkpoints = checkpoints
        self._incarnation = incarnation
        self._file: IO[bytes] = (run_directory / LEDGER).open("ab")

    def append(self, ended: Iterable[Ended]) -> None:
        """Add lines. Raises Superseded, writing nothing, when another learner has taken over."""
        lines = b"".join(msgspec.json.encode(line) + b"\n" for line in ended)
        if not lines:
            return
        check_newest(self._checkpoints, self._incarnation)
        self._file.write(lines)
        self._file.flush()

    def sync(self) -> None:
        """Force all lines to the disk: before a checkpoint counts on them."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def roll_back(run_directory: Path, keep_lines: int) -> int:
    """Keep the first `keep_lines` lines, move the rest aside; return how many moved.

    Raises LedgerDamaged when there are fewer lines than that.
    """
    path = run_directory / LEDGER
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    if len(lines) < keep_lines:
        raise LedgerDamaged(
            f"{path} has {len(lines)} lines, but the checkpoint counts on {keep_lines}: lines were removed. Bring the "
            "file back as it was, or start a new run"
        )
    beyond = lines[keep_lines:]
    if beyond:
        with (run_directory / ROLLED_BACK).open("ab") as rolled_back:
            rolled_back.writelines(line if line.endswith(b"\n") else line + b"\n" for line in beyond)
            rolled_back.flush()
            os.fsync(rolled_back.fileno())
    scratch = path.with_name(LEDGER + ".writing")
    with scratch.open("wb") as kept:
        kept.writelines(lines[:keep_lines])
        kept.flush()
        os.fsync(kept.fileno())
    scratch.rename(path)
    fsync_path(run_directory)
    return len(beyond)


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """What `check_ledger` found. Keys are log ids; values are admission numbers or group ids."""

    lines: int
    """Lines of the surviving lineage."""
    void: int
    """Lines of a lower incarnation after one of a higher."""
    missing: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Admitted and not in the ledger."""
    repeated: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """In the ledger more than once."""
    unknown: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """In the ledger, never admitted."""
    trained_twice: list[str] = field(default_factory=list[str])
    """Group ids trained more than once, over all logs."""

    @property
    def ok(self) -> bool:
        return not (self.missing or self.repeated or self.unknown or self.trained_twice)

    @property
    def unaccounted(self) -> int:
        """Admitted groups without a line."""
        return sum(len(numbers) for numbers in self.missing.values())


def read_ledger(path: Path) -> list[Ended]:
    """All lines. Raises LedgerDamaged naming the first that is no line."""
    return ledger_lines(path.read_bytes(), str(path))


def ledger_lines(data: bytes, name: str) -> list[Ended]:
    """The same of the bytes of a ledger that is called `name`."""
    lines: list[Ended] = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            lines.append(msgspec.json.decode(line, type=Ended))
        except msgspec.DecodeError as error:
            raise LedgerDamaged(f"{name}:{number}: {error}") from error
    return lines


def check_ledger(lines: Iterable[Ended], admitted: Mapping[str, Collection[int]]) -> LedgerReport:
    """Every admitted number of every log exactly once in the surviving lineage.

    `admitted`: for each log that still exists, the admission numbers found on its `generations`. Logs that are not in
    it are gone with their broker: only repetitions show there.
    """
    newest = 0
    void = 0
    seen: dict[str, dict[int, int]] = {}
    trained: dict[str, int] = {}
    for line in lines:
        newest = max(newest, line.incarnation)
        if line.incarnation < newest:
            void += 1
            continue
        counts = seen.setdefault(line.log_id, {})
        counts[line.admission_number] = counts.get(line.admission_number, 0) + 1
        if line.outcome == Outcome.TRAINED:
            trained[line.group_id] = trained.get(line.group_id, 0) + 1

    def not_empty(found: dict[str, list[int]]) -> dict[str, list[int]]:
        return {log_id: sorted(numbers) for log_id, numbers in found.items() if numbers}

    return LedgerReport(
        lines=sum(sum(counts.values()) for counts in seen.values()),
        void=void,
        missing=not_empty({log: sorted(set(numbers) - seen.get(log, {}).keys()) for log, numbers in admitted.items()}),
        repeated=not_empty({log: [n for n, count in counts.items() if count > 1] for log, counts in seen.items()}),
        unknown=not_empty({log: sorted(seen.get(log, {}).keys() - set(numbers)) for log, numbers in admitted.items()}),
        trained_twice=sorted(group for group, count in trained.items() if count > 1),
    )
