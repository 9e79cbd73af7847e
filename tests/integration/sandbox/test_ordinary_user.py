"""Judging as an ordinary user: what cannot be enforced is refused, or allowed by name; all else holds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.jail.confinement import reachable

NOBODY = 65534
ROOT = Path(__file__).parents[3]
SCRIPT = """
import asyncio, json, os
from sandbox import Judge, SandboxUnavailable
from schemas import *

assert os.getuid() == 65534
ADD = FunctionGrader(entry_point="f", tests=(FunctionTest.of([1], 2), FunctionTest.of([1], 3)))
PROBE = '''
import os, sys
def f(x):
    found = []
    for name in ("/", "/usr", "/build", "/headwater"):
        try:
            open(name + "/x", "w")
            found.append(name)
        except OSError: pass
    for name in (1, os.getppid()):
        try: os.kill(name, 9)
        except OSError: pass
    return [os.getuid(), found, os.listdir("/proc/1/fd") if os.path.exists("/proc/1") else []]
'''
async def main():
    seen = {}
    try:
        async with Judge(1): pass
    except SandboxUnavailable as error:
        seen["refused"] = str(error)
    async with Judge(1, allow_unenforced=frozenset({"memory", "pids", "cpu", "uids"})) as judge:
        async def kinds(program, grader):
            result = await judge.judge(program, grader)
            return [test.kind.value for test in result.tests] or [result.kind.value]
        seen["add"] = await kinds("def f(x):\\n    return x + 1", ADD)
        seen["syntax"] = await kinds("def f(x", ADD)
        probe = FunctionGrader(entry_point="f", tests=(FunctionTest.of([1], [1000, [], []]),))
        seen["probe"] = await kinds(PROBE, probe)
        check = CheckGrader(entry_point="f", program="def check(f): assert f(1) == 2")
        seen["check"] = await kinds("def f(x):\\n    return x + 1", check)
        seen["cheat"] = await kinds("import os\\ndef f(x): os._exit(0)", check)
        run = StdioGrader(tests=(StdioTest(stdin="4", stdout="5"),), language="c")
        seen["c"] = await kinds('#include <stdio.h>\\nint main(void){int n;scanf("%d",&n);printf("%d",n+1);}', run)
        report = '[ "$(answer sh prog)" = 3 ] && echo PASS a >&3'
        project = ProjectGrader(files={}, target="prog", test=report, tests=(NamedTest(id="a"),))
        seen["project"] = await kinds("echo 3", project)
        slow = StdioGrader(tests=(StdioTest(stdout=""),), limits=Limits(cpu_seconds=1, wall_seconds=2))
        seen["slow"] = await kinds("while True: pass", slow)
        forks = "import os\\nfor _ in range(5):\\n    if os.fork() == 0:\\n        import time; time.sleep(99)"
        seen["left"] = await kinds(forks, slow)
    print(json.dumps(seen))
asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become an ordinary user")
def test_as_an_ordinary_user() -> None:
    command = [
        "setpriv",
        "--reuid",
        str(NOBODY),
        "--regid",
        str(NOBODY),
        "--clear-groups",
        sys.executable,
        "-c",
        SCRIPT,
    ]
    if not reachable(sys.base_prefix):
        # the Python that runs us is in root's home: show it to the user in a mount table of the test's own
        home = "/" + Path(sys.base_prefix).parts[1]
        script = (
            f"mount --bind {sys.base_prefix} /mnt; mount -t tmpfs -o mode=755 none {home}; "
            f'mkdir -p {sys.base_prefix}; mount --bind /mnt {sys.base_prefix}; exec "$0" "$@"'
        )
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, *command]
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert "uids" in seen.pop("refused")
    assert seen == {
        "add": ["accepted", "wrong_answer"],
        "syntax": ["compile_error"],
        "probe": ["accepted"],
        "check": ["accepted"],
        "cheat": ["runtime_error"],
        "c": ["accepted"],
        "project": ["accepted"],
        "slow": ["time_limit"],
        "left": ["accepted"],
    }
