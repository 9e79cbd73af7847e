"""The screen's look at /metrics, on a machine with a proxy."""

from pathlib import Path

import pytest

from headwater.look.scrape import scrape, total
from wire.metrics import Metrics


async def test_a_proxy_of_the_environment_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    metrics = Metrics()
    await metrics.serve(0, port_file=tmp_path / "learner.port")
    try:
        metrics.loss.set(0.25)
        assert total(await scrape(tmp_path), "headwater_loss") == 0.25
    finally:
        await metrics.close()
