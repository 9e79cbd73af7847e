# ruff: noqa: ASYNC110, ASYNC240 - a test watches other processes from outside
"""The supervisor with small scripts as roles."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from headwater.run.processes import RestartBudget, RoleSpec, describe_exit, last_lines, start_process
from headwater.run.supervisor import REFUSED, Supervisor

SLEEPER = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.05)"


def role(tmp_path: Path, name: str, code: str, stop_seconds: float = 5.0) -> RoleSpec:
    return RoleSpec(name, [sys.executable, "-c", code], tmp_path / f"{name}.log", stop_seconds=stop_seconds)


async def until_log_has(path: Path, text: str, count: int = 1) -> None:
    async with asyncio.timeout(20):
        while not path.exists() or path.read_text().count(text) < count:
            await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_killed_role_is_started_again(tmp_path: Path) -> None:
    restarted: list[tuple[str, str]] = []
    supervisor = Supervisor(on_restart=lambda name, how: restarted.append((name, how)))
    spec = role(tmp_path, "sleeper", SLEEPER)
    await supervisor.start([spec])
    await until_log_has(spec.log, "up")
    os.kill(supervisor.running["sleeper"], signal.SIGKILL)
    await until_log_has(spec.log, "up", 2)
    assert restarted == [("sleeper", "killed by SIGKILL")]
    assert supervisor.restarts == {"sleeper": 1}
    assert await supervisor.stop([["sleeper"]]) == []
    assert supervisor.running == {}


async def test_a_role_that_keeps_dying_is_given_up_with_its_last_lines(tmp_path: Path) -> None:
    supervisor = Supervisor(on_restart=lambda *_: None, budget=lambda: RestartBudget(2, 60, 0.01))
    spec = role(tmp_path, "broken", "print('the cause'); raise SystemExit(3)")
    await supervisor.start([spec])
    async with asyncio.timeout(20):
        failure = await supervisor.failed()
    assert "broken ended (exit status 3) and was restarted 2 times" in str(failure)
    assert str(spec.log) in str(failure)
    assert "the cause" in str(failure)


async def test_what_a_restart_cannot_mend_is_not_restarted(tmp_path: Path) -> None:
    supervisor = Supervisor(on_restart=lambda *_: None)
    await supervisor.start([role(tmp_path, "refusing", f"raise SystemExit({REFUSED})")])
    async with asyncio.timeout(20):
        assert "restarted" not in str(await supervisor.failed())


async def test_a_role_that_may_finish_is_done_and_not_restarted(tmp_path: Path) -> None:
    supervisor = Supervisor(on_restart=lambda *_: pytest.fail("restarted"))
    await supervisor.start([role(tmp_path, "short", "pass")], may_finish=frozenset({"short"}))
    async with asyncio.timeout(20):
        await supervisor.finished("short")


@pytest.mark.parametrize(("given", "policy"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
async def test_threads_of_roles_do_not_spin_unless_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, policy: str
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    spec = role(tmp_path, "threads", "import os\nprint(os.environ['OMP_WAIT_POLICY'])")
    assert await (await start_process(spec)).wait() == 0
    assert spec.log.read_text() == f"{policy}\n"


async def test_roles_end_in_the_order_asked_for(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import signal, sys, time
        def end(*_):
            with open(sys.argv[1], "a") as order: order.write(sys.argv[2] + "\\n")
            sys.exit()
        signal.signal(signal.SIGTERM, end)
        print("up", flush=True)
        while True: time.sleep(0.05)
    """)
    order = tmp_path / "order"
    specs = [RoleSpec(name, [sys.executable, "-c", code, str(order), name], tmp_path / f"{name}.log") for name in "abc"]
    supervisor = Supervisor(on_restart=lambda *_: None)
    await supervisor.start(specs)
    for spec in specs:
        await until_log_has(spec.log, "up")
    assert await supervisor.stop([["b"], ["c"]]) == []
    assert order.read_text().split() == ["b", "c", "a"]


async def test_a_role_that_ignores_the_end_is_killed_with_its_children(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import signal, subprocess, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("child", subprocess.Popen(["sleep", "600"]).pid, flush=True)
        while True: time.sleep(0.05)
    """)
    spec = role(tmp_path, "deaf", code, stop_seconds=0.2)
    supervisor = Supervisor(on_restart=lambda *_: None)
    await supervisor.start([spec])
    await until_log_has(spec.log, "\n")
    child = int(spec.log.read_text().split()[1])
    assert await supervisor.stop([]) == ["deaf"]
    async with asyncio.timeout(5):
        while alive(child):
            await asyncio.sleep(0.02)


def test_children_die_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    program = textwrap.dedent(f"""
        import asyncio, sys
        from pathlib import Path
        from headwater.run.processes import RoleSpec
        from headwater.run.supervisor import Supervisor
        async def main():
            supervisor = Supervisor(on_restart=lambda *_: None)
            command = [sys.executable, "-c", {SLEEPER!r}]
            await supervisor.start([RoleSpec(n, command, Path({str(tmp_path)!r}) / n) for n in ("a", "b")])
            print(*supervisor.running.values(), flush=True)
            await asyncio.sleep(600)
        asyncio.run(main())
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        children = [int(pid) for pid in supervisor.stdout.readline().split()]
        assert len(children) == 2
        assert all(alive(pid) for pid in children)
        supervisor.kill()
    deadline = 5.0
    while any(alive(pid) for pid in children) and deadline > 0:
        asyncio.run(asyncio.sleep(0.05))
        deadline -= 0.05
    assert not any(alive(pid) for pid in children)


def test_restart_waits_double_and_end() -> None:
    budget = RestartBudget(restarts=3, window_seconds=100, first_wait_seconds=1)
    assert [budget.next_wait(now) for now in (0, 1, 2, 3)] == [1, 2, 4, None]
    assert budget.next_wait(101.5) == 2, "the first two are out of the window"


def test_exit_status_in_words(tmp_path: Path) -> None:
    assert describe_exit(-9) == "killed by SIGKILL"
    assert describe_exit(3) == "exit status 3"
    assert last_lines(tmp_path / "absent") == ""
