"""Limits: the task's wish, the language's default, the host's cap."""

from sandbox.limits import DEFAULT, HOST_CAP, resolve
from schemas import Limits


def test_what_the_task_leaves_open_is_the_default() -> None:
    assert resolve(Limits(), DEFAULT) == DEFAULT


def test_the_wall_limit_follows_the_cpu_limit() -> None:
    assert resolve(Limits(cpu_seconds=10.0), DEFAULT).wall_seconds == 30.0
    assert resolve(Limits(cpu_seconds=10.0, wall_seconds=12.0), DEFAULT).wall_seconds == 12.0


def test_the_host_caps_every_wish() -> None:
    wish = Limits(
        cpu_seconds=1e9,
        wall_seconds=1e9,
        memory_bytes=1 << 60,
        processes=1 << 30,
        output_bytes=1 << 60,
        disk_bytes=1 << 60,
    )
    assert resolve(wish, DEFAULT) == HOST_CAP
