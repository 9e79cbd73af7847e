"""Reading the /metrics endpoints of a run's roles on this machine."""

import asyncio
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

_TIMEOUT_SECONDS = 2.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""No proxy of `http_proxy` knows this machine's own ports."""


class Sample(NamedTuple):
    """One value of one role."""

    role: str
    name: str
    labels: dict[str, str]
    value: float


async def scrape(logs: Path) -> list[Sample]:
    """Every sample of every role that has written its port to `<logs>/<role>.port`; a role that is down is left out."""
    found = await asyncio.gather(*(asyncio.to_thread(_scrape_one, path.stem, path) for path in _port_files(logs)))
    return [sample for samples in found for sample in samples]


def total(samples: Iterable[Sample], name: str, **labels: str) -> float | None:
    """Sum over roles of a metric's samples with these labels; None when there are none."""
    values = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    return sum(values) if values else None


def _port_files(logs: Path) -> list[Path]:
    return sorted(logs.glob("*.port"))


def _scrape_one(role: str, port_file: Path) -> list[Sample]:
    try:
        port = int(port_file.read_text())
        with _DIRECT.open(f"http://127.0.0.1:{port}/metrics", timeout=_TIMEOUT_SECONDS) as answer:
            text: str = answer.read().decode()
    except (OSError, ValueError):  # it is starting, or has just ended
        return []
    return [
        Sample(role, sample.name, dict(sample.labels), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
