"""The role `recorder`: writes each evaluation group once to `evaluations.jsonl`, for the report and for people.

It reads `evaluations` from its beginning and skips the groups that the file has: the file is its only state.
"""

import asyncio
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from schemas import GroupDropped, Trajectory
from schemas.tokens import unpack_token_ids
from schemas.topics import EVALUATIONS
from wire.kafka.events import readable
from wire.kafka.reading import begin_and_end_offsets, places_of
from wire.kafka.records import Place, Record
from wire.kafka.settings import KafkaSettings
from wire.kafka.tail import Tail
from wire.metrics import Metrics

log = logging.getLogger(__name__)


async def run_recorder(path: Path, run_id: str, settings: KafkaSettings, metrics: Metrics, stop: asyncio.Event) -> None:
    """Record until `stop`, and then what is on the topic at that moment."""
    written = _whole_lines(path)
    with path.open("a", encoding="utf-8") as file:
        places = await places_of(settings, [EVALUATIONS.name])
        start = {place: begin for place, (begin, _) in (await begin_and_end_offsets(settings, places)).items()}
        async with Tail(settings, start) as tail:
            last: dict[Place, int] | None = None
            while last is None or any([await tail.position(*place) < end for place, end in last.items()]):
                if stop.is_set() and last is None:
                    held = await begin_and_end_offsets(settings, places)
                    last = {place: end for place, (_, end) in held.items()}
                for record in await tail.poll(0.2):
                    line = _line(record, run_id)
                    if line is not None and line["group_id"] not in written:
                        written.add(line["group_id"])
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
                file.flush()
        os.fsync(file.fileno())


def read_evaluations(path: Path) -> list[dict[str, Any]]:
    """All whole lines of `evaluations.jsonl`; none when the file is not there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def evaluation_line(event: Trajectory | GroupDropped, recorded_at: float) -> dict[str, Any]:
    """One group as a line of `evaluations.jsonl`. `recorded_at` in Unix seconds."""
    line: dict[str, Any] = {
        "group_id": event.group_id,
        "log_id": event.log_id,
        "domain": event.domain,
        "prompt_id": event.prompt_id,
        "epoch": event.epoch,
        "recorded_at": round(recorded_at, 3),
    }
    if isinstance(event, GroupDropped):
        return {**line, "dropped": event.reason.value, "detail": event.detail}
    return {
        **line,
        "prompt": event.prompt_text,
        "temperature": event.temperature,
        "members": [
            {
                "sample_index": member.sample_index,
                "reward": member.reward,
                "verdict": member.verdict,
                "unscorable": member.unscorable_words,
                "finish_reason": member.finish_reason.value,
                "completion_tokens": sum(len(unpack_token_ids(s.token_ids)) for s in member.spans if s.trainable),
                "policy_version": _newest_version(member.spans),
                "text": member.text,
                "feedback": member.feedback,
            }
            for member in event.members
        ],
    }


def _newest_version(spans: Any) -> str | None:
    versions = [span.policy_version for span in spans if span.policy_version is not None]
    return str(max(versions)) if versions else None


def _line(record: Record, run_id: str) -> dict[str, Any] | None:
    event = readable(record, EVALUATIONS)
    if event is None or event.run_id != run_id:
        return None
    return evaluation_line(event, time.time())


def _whole_lines(path: Path) -> set[str]:
    """The group ids in the file; a last line that a crash cut off is removed."""
    if not path.exists():
        return set()
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    return {json.loads(line)["group_id"] for line in whole.splitlines()}
