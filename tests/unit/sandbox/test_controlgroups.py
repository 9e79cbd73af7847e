"""Control groups of both versions, against faked hierarchies: what is written where, what is read back."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.inside import meters
from sandbox.jail import controlgroups
from sandbox.jail.controlgroups import ControlGroup, Hierarchy, probe, sweep


def second(tmp_path: Path, controllers: str = "cpuset cpu io memory pids") -> Path:
    """A version 2 mount whose group /service is delegated to this process, which is in it."""
    service = tmp_path / "service"
    service.mkdir()
    (service / "cgroup.controllers").write_text(controllers)
    (service / "cgroup.subtree_control").write_text("")
    (service / "cgroup.procs").write_text(f"{os.getpid()}\n")
    (service / "cgroup.type").write_text("domain\n")
    return service


def probe_second(tmp_path: Path) -> Hierarchy:
    return probe(f"cgroup2 {tmp_path} cgroup2 rw,nosuid 0 0\n", "0::/service\n")


def test_version_2_is_delegated(tmp_path: Path) -> None:
    service = second(tmp_path)
    hierarchy = probe_second(tmp_path)
    assert (hierarchy.version, hierarchy.missing) == (2, ())
    assert set(hierarchy.parents.values()) == {service}
    assert (service / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert (service / "headwater-service/cgroup.procs").read_text() == str(os.getpid())


def test_version_2_that_passes_its_controllers_on_already_is_left_alone(tmp_path: Path) -> None:
    service = second(tmp_path)
    (service / "cgroup.subtree_control").write_text("cpu memory pids")
    assert probe_second(tmp_path).missing == ()
    assert not (service / "headwater-service").exists()


def test_version_2_without_a_controller(tmp_path: Path) -> None:
    second(tmp_path, "cpu memory")
    assert probe_second(tmp_path).missing == ("pids",)


def test_version_2_not_delegated(tmp_path: Path) -> None:
    assert probe_second(tmp_path).missing == ("memory", "pids", "cpu")


def test_version_1(tmp_path: Path) -> None:
    for name in ("memory/own", "pids", "cpuacct"):
        (tmp_path / name).mkdir(parents=True)
    mounts = "".join(f"cgroup {tmp_path}/{name} cgroup rw,{name} 0 0\n" for name in ("memory", "pids", "cpuacct"))
    # the unified hierarchy beside it carries none of the controllers
    hierarchy = probe(mounts + f"cgroup2 {tmp_path} cgroup2 rw 0 0\n", "4:memory:/own\n8:pids:/elsewhere\n0::/\n")
    assert hierarchy.version == 1
    assert hierarchy.parents == {
        "memory": tmp_path / "memory/own",
        "pids": tmp_path / "pids",
        "cpuacct": tmp_path / "cpuacct",
    }


def test_no_control_groups() -> None:
    assert probe("proc /proc proc rw 0 0\n", "").missing == ("memory", "pids", "cpuacct")


@contextmanager
def group(hierarchy: Hierarchy, **files: str) -> Iterator[tuple[ControlGroup, Path]]:
    made = ControlGroup(hierarchy, "1.0")
    folder = next(iter(made.paths.values()))
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)
    yield made, folder


def test_limits_and_the_kill_of_version_2(tmp_path: Path) -> None:
    second(tmp_path)
    with group(probe_second(tmp_path), memory_swap="", cgroup_kill="") as (made, folder):
        (folder / "memory.swap.max").write_text("max")
        made.limit(1 << 30, 20)
        made.kill()
        assert (folder / "memory.max").read_text() == str(1 << 30)
        assert (folder / "memory.swap.max").read_text() == "0"
        assert (folder / "pids.max").read_text() == "20"
        assert (folder / "cgroup.kill").read_text() == "1"
        assert made.entries == (folder / "cgroup.procs",)


def test_accounts_of_version_2(tmp_path: Path) -> None:
    second(tmp_path)
    stat = "usage_usec 5000\nuser_usec 4000\nsystem_usec 1000\n"
    with group(
        probe_second(tmp_path),
        cpu_stat=stat,
        memory_peak="900\n",
        memory_current="400\n",
        memory_events="low 0\nmax 3\noom 1\noom_kill 2\n",
        pids_events="max 7\n",
    ) as (made, folder):
        assert (made.memory_used_bytes(), made.memory_kills()) == (400, 2)
        files = made.meter_files()
        meter = meters.open_meters(files)
        before = meter.start()
        (folder / "cpu.stat").write_text("usage_usec 9000\n")
        (folder / "memory.peak").write_text("2400\n")
        (folder / "memory.events").write_text("oom_kill 3\n")
        (folder / "pids.events").write_text("max 9\n")
        assert meter.since(before) == {
            "cpu_ns": 4_000_000,
            "peak_bytes": 2000,
            "memory_kills": 1,
            "process_refusals": 2,
        }
        for descriptor in files.values():
            os.close(descriptor)


def test_accounts_of_version_1(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    hierarchy = Hierarchy(1, dict.fromkeys(("memory", "pids", "cpuacct"), tmp_path / "all"))
    with group(hierarchy, cpuacct_usage="1000\n", memory_oom_control="oom_kill_disable 0\noom_kill 4\n") as (
        made,
        folder,
    ):
        (folder / "memory.usage_in_bytes").write_text("100\n")
        (folder / "memory.max_usage_in_bytes").write_text("500\n")
        assert (made.memory_used_bytes(), made.memory_kills()) == (100, 4)
        made.limit(1 << 20, 9)
        assert (folder / "memory.limit_in_bytes").read_text() == str(1 << 20)
        files = made.meter_files()
        meter = meters.open_meters(files)
        before = meter.start()
        (folder / "memory.max_usage_in_bytes").write_text("700\n")
        assert meter.since(before)["peak_bytes"] == 600
        for descriptor in files.values():
            os.close(descriptor)


def test_version_1_limits_swap_where_the_kernel_counts_it(tmp_path: Path) -> None:
    hierarchy = Hierarchy(1, {"memory": tmp_path})
    with group(hierarchy) as (made, folder):
        (folder / "memory.limit_in_bytes").write_text("9223372036854771712\n")
        (folder / "memory.memsw.limit_in_bytes").write_text("9223372036854771712\n")
        for size in (1 << 20, 1 << 24, 1 << 22):
            made.limit(size, 9)
            for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
                assert (folder / name).read_text() == str(size)
        (folder / "memory.memsw.limit_in_bytes").unlink()
        (folder / "memory.swappiness").write_text("60\n")
        made.limit(1 << 20, 9)
        assert (folder / "memory.swappiness").read_text() == "0"


def test_groups_of_a_service_that_is_gone_are_swept(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    hierarchy = Hierarchy(2, {"memory": tmp_path})
    own = ControlGroup(hierarchy, "5.0")
    for name in (f"headwater-jail-{gone.pid}-123-5.0", "headwater-jail-1-1-7.3", "other"):
        (tmp_path / name).mkdir()
    assert sweep(hierarchy) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["other", own.paths["memory"].name])


def test_without_control_groups_there_is_no_folder_and_no_limit() -> None:
    made = ControlGroup(Hierarchy(0), "1.0")
    made.limit(1 << 20, 5)
    made.kill()
    assert (made.entries, made.meter_files(), made.memory_used_bytes()) == ((), {}, 0)


def test_a_group_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    with pytest.raises(controlgroups.SandboxUnavailable, match="cannot make the control group"):
        ControlGroup(Hierarchy(2, {"memory": tmp_path / "missing"}), "1.0")
