"""What a run says of itself to other machines, and what a machine that cannot join says."""

from pathlib import Path
from typing import Any

import pytest

from headwater.config.load import build_config, write_config
from headwater.config.run_config import RunConfig
from headwater.errors import ConfigError, HeadwaterError, RunDirectoryError
from headwater.files.positions import storage_uri
from headwater.files.run_directory import RunDirectory
from headwater.run.joining import check_reachable, config_here, config_of, public_settings
from headwater.run.up import check_elsewhere
from schemas import RunStarted
from wire.errors import StorageFailed
from wire.kafka.settings import KafkaSettings


def config(**changes: Any) -> RunConfig:
    settings = {
        "name": "joined",
        "model": "smollm2-135m-instruct",
        "data": [{"kind": "functions", "count": 4}],
        "training": {"batch_groups": 2, "max_staleness": 1, "max_updates": 3, "learning_rate": 1e-5},
        "sampling": {"group_size": 4, "max_new_tokens": 8},
    }
    return build_config(settings | changes)


def started(values: dict[str, Any], storage: str = "s3://bucket/runs/joined-1") -> RunStarted:
    return RunStarted(run_id="joined-1", name="joined", config=values, partitions=4, storage=storage, started_at=0.0)


def test_another_machine_has_the_same_settings() -> None:
    here = config(broker={"partitions": 7}, training={**config().training.model_dump(), "max_seconds": 5.0})
    assert config_of(started(public_settings(here))) == here


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("https://me:secret@host/p.jsonl", "https://host/p.jsonl"),
        ("https://me:half@secret@host/p.jsonl", "https://host/p.jsonl"),
        ("https://host/p.jsonl?X-Amz-Signature=secret", "https://host/p.jsonl"),
        ("https://me:secret@host/p.jsonl?token=secret", "https://host/p.jsonl"),
        ("s3://bucket/part-?.jsonl", "s3://bucket/part-?.jsonl"),
        ("hf://datasets/org/name@main/p.parquet", "hf://datasets/org/name@main/p.parquet"),
        ("/data/what?@1.jsonl", "/data/what?@1.jsonl"),
    ],
)
def test_the_log_gets_no_credentials(path: str, told: str) -> None:
    told_settings = public_settings(config(data=[{"kind": "file", "name": "mine", "path": path, "domain": "mine"}]))
    assert told_settings["data"][0]["path"] == told


def test_the_machine_that_started_the_run_has_its_data_by_their_whole_urls(tmp_path: Path) -> None:
    here, elsewhere = RunDirectory(tmp_path / "here"), RunDirectory(tmp_path / "elsewhere")
    data = [{"kind": "file", "name": "mine", "path": "https://me:secret@host/p.jsonl", "domain": "mine"}]
    started_with = config(data=data)
    here.create()
    write_config(started_with, here.config)
    run = started(public_settings(started_with))
    assert config_here(run, here) == started_with
    assert config_here(run, elsewhere).data[0].path == "https://host/p.jsonl"


def test_a_storage_url_with_credentials_is_refused() -> None:
    with pytest.raises(ConfigError, match="may hold no user or password"):
        config(storage={"url": "s3://key:secret@bucket/runs"})


def test_settings_of_another_release_are_said() -> None:
    with pytest.raises(ConfigError, match="another release: install the same one here"):
        config_of(started({**public_settings(config()), "speculation": {"depth": 2}}))


def test_where_the_runs_work_is(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "joined")
    directory.belong_to("joined-a1b2c3")
    assert storage_uri(config(), directory) == (tmp_path / "joined").as_uri()
    stored = config(storage={"url": "s3://bucket/runs/"})
    assert storage_uri(stored, directory) == "s3://bucket/runs/joined-a1b2c3"


def test_a_directory_on_another_machine_is_said(tmp_path: Path) -> None:
    check_reachable(started({}, "memory://bucket/runs"), "rollout")
    check_reachable(started({}, tmp_path.as_uri()), "rollout")
    with pytest.raises(ConfigError, match=r"set storage\.url"):
        check_reachable(started({}, (tmp_path / "absent").as_uri()), "rollout")
    with pytest.raises(StorageFailed, match="nonsense"):
        check_reachable(started({}, "nonsense://bucket/runs"), "rollout")


KAFKA = KafkaSettings(bootstrap="kafka:9092")


@pytest.mark.parametrize(
    ("elsewhere", "settings", "storage", "message"),
    [
        ("sandbox", None, None, "needs a broker that other machines reach"),
        ("learner", KAFKA, None, "set storage.url"),
        ("recorder", KAFKA, "s3://bucket/runs", "cannot be elsewhere"),
        ("sandbx", KAFKA, None, "did you mean 'sandbox'"),
    ],
)
def test_what_cannot_be_left_to_others(
    elsewhere: str, settings: KafkaSettings | None, storage: str | None, message: str
) -> None:
    with pytest.raises(HeadwaterError, match=message):
        check_elsewhere([elsewhere], config(storage={"url": storage} if storage else {}), settings)


def test_what_can_be_left_to_others() -> None:
    check_elsewhere(["sandbox", "rollout", "dispatch", "scheduler"], config(), KAFKA)
    check_elsewhere(["learner"], config(storage={"url": "s3://bucket/runs"}), KAFKA)
    check_elsewhere([], config(), None)


def test_a_directory_belongs_to_one_run(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "joined")
    directory.belong_to("joined-1")
    directory.belong_to("joined-1")
    assert directory.run_id() == "joined-1"
    with pytest.raises(RunDirectoryError, match="the directory of run joined-1, not of joined-2"):
        directory.belong_to("joined-2")
