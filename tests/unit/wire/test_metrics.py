"""The metrics endpoint: found through its file, and every name in base units under one prefix."""

import asyncio
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from wire.metrics import Metrics


async def test_the_endpoint_serves_what_was_counted_and_says_where(tmp_path: Path) -> None:
    metrics = Metrics()
    metrics.events_in.labels("dispatch", "rollouts").inc(3)
    port = await metrics.serve(port_file=tmp_path / "dispatch.port")
    try:
        assert int((tmp_path / "dispatch.port").read_text()) == port
        answer = await asyncio.to_thread(_get, f"http://127.0.0.1:{port}/metrics")
    finally:
        await metrics.close()
    assert 'headwater_events_in_total{hop="dispatch",topic="rollouts"} 3.0' in answer
    assert "process_resident_memory_bytes" in answer


async def test_two_processes_in_one_do_not_share(tmp_path: Path) -> None:
    first, second = Metrics(), Metrics()
    first.loss.set(1.0)
    assert second.registry.get_sample_value("headwater_loss") == 0.0


def test_every_name_has_the_prefix_and_base_units() -> None:
    names = [family.name for family in Metrics().registry.collect()]
    ours = [name for name in names if not name.startswith("process_")]
    assert all(name.startswith("headwater_") for name in ours)
    assert not [name for name in ours if name.endswith(("_ms", "_milliseconds", "_minutes", "_mb", "_percent"))]


def _get(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        text = answer.read().decode()
    assert list(text_string_to_metric_families(text))
    return text
