"""`dtype = "auto"` and `threads = 0`: what they stand for on this host and that one."""

import os
from pathlib import Path

import pytest

from headwater.config.run_config import RunConfig
from headwater.errors import ConfigError, HeadwaterError
from headwater.run.cores import usable_cores
from headwater.run.demo import demo_config
from headwater.run.precision import Speeds, as_recorded, measure_speeds, settle, settled
from headwater.run.roles import _settled  # pyright: ignore[reportPrivateUsage]

# GFLOP/s of one thread, 480x576x1536: an EPYC with avx512_bf16 and a Xeon without AMX
EPYC = Speeds({"float32": 81, "bfloat16": 183}, {"float32": 77, "bfloat16": 177})
XEON = Speeds({"float32": 155, "bfloat16": 83}, {"float32": 150, "bfloat16": 80})


def config(*overrides: str) -> RunConfig:
    return demo_config(model="m", seed=0, name="n", overrides=overrides)


def dtypes(config: RunConfig) -> tuple[str, str]:
    return config.training.dtype, config.engine.dtype


def test_a_run_says_nothing_of_types_unless_it_is_told() -> None:
    assert dtypes(config()) == ("auto", "auto")


@pytest.mark.parametrize(("speeds", "chosen"), [(EPYC, "bfloat16"), (XEON, "float32")])
def test_the_faster_type_is_chosen_for_both_sides(speeds: Speeds, chosen: str) -> None:
    found, notes = settle(config(), speeds)
    assert dtypes(found) == (chosen, chosen)
    assert chosen in notes[0]
    assert f"{speeds.learner['bfloat16']:.0f} in bfloat16" in notes[0]


def test_bfloat16_that_hardly_saves_time_is_not_worth_its_rounding() -> None:
    assert Speeds({"float32": 100, "bfloat16": 105}, {"float32": 100, "bfloat16": 105}).faster() == "float32"


@pytest.mark.parametrize("side", ["training", "engine"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
async def test_a_type_set_for_one_side_is_the_others_too(side: str, dtype: str) -> None:
    found, notes = await settled(config(f"{side}.dtype={dtype}"))
    assert dtypes(found) == (dtype, dtype)
    assert "was set for one of them" in notes[0]


async def test_two_types_that_differ_are_kept_and_told() -> None:
    found, _ = await settled(config("training.dtype=bfloat16", "engine.dtype=float32"))
    assert dtypes(found) == ("bfloat16", "float32")
    assert "the sampler computes in float32 what the learner computes in bfloat16" in found.dtype_warnings[0]
    assert await settled(same := config("training.dtype=float32", "engine.dtype=float32")) == (same, [])


async def test_a_learner_on_a_gpu_means_bfloat16() -> None:
    found, _ = await settled(config("training.device=cuda", "engine.device=cuda"))
    assert dtypes(found) == ("bfloat16", "bfloat16")


async def test_the_measurement_is_of_this_host() -> None:
    found, notes = await settled(config())
    assert found.training.dtype == found.engine.dtype != "auto"
    assert "GFLOP/s here" in notes[0]
    speeds = await measure_speeds(config())
    for side in (speeds.learner, speeds.sampler):
        assert side.keys() == {"float32", "bfloat16"}
        assert all(0.1 < speed < 1e5 for speed in side.values())


async def test_a_host_that_cannot_be_measured_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(HeadwaterError, match=r"set training\.dtype and engine\.dtype"):
        await settled(config())


def test_a_resume_keeps_what_was_chosen() -> None:
    recorded, _ = settle(config(), EPYC)
    assert dtypes(as_recorded(config(), recorded)) == ("bfloat16", "bfloat16")
    assert dtypes(as_recorded(config("training.dtype=float32"), recorded)) == ("float32", "bfloat16")


def test_a_role_without_a_chosen_type_says_so() -> None:
    assert _settled("training.dtype", "float32") == "float32"
    with pytest.raises(ConfigError, match=r"training\.dtype is auto"):
        _settled("training.dtype", "auto")


def host(path: Path, siblings: dict[int, str]) -> Path:
    for number, text in siblings.items():
        topology = path / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(text + "\n")
    return path


@pytest.mark.parametrize(
    ("allowed", "siblings", "quota", "cores"),
    [
        ({0, 1}, {0: "0-1", 1: "0-1"}, None, 1),
        ({0, 1}, {0: "0", 1: "1"}, None, 2),
        ({0, 1, 2, 3}, {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, "max 100000", 2),
        ({0, 2}, {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, None, 1),
        ({0, 1, 2, 3}, {}, None, 4),
        ({0, 1, 2, 3}, {}, "250000 100000", 2),
        ({0, 1, 2, 3}, {}, "50000 100000", 1),
    ],
)
def test_cores_are_not_virtual_cpus(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    allowed: set[int],
    siblings: dict[int, str],
    quota: str | None,
    cores: int,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
    limit = tmp_path / "cpu.max"
    if quota is not None:
        limit.write_text(quota + "\n")
    assert usable_cores(host(tmp_path / "cpus", siblings), limit) == cores
