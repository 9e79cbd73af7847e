"""Attacks that the format of the cases cannot say: across jobs, on what is handed back, on projects and checkers.

The numbers are those of `sandbox/ATTACKS.md`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from sandbox import Judge, score
from sandbox.jail.confinement import reachable
from schemas import (
    Checker,
    CheckGrader,
    FunctionGrader,
    FunctionTest,
    Limits,
    StdioGrader,
    StdioTest,
    UnittestGrader,
    VerdictKind,
)
from tasks.domains.humaneval import problems
from tests.integration.sandbox.programs import kinds

pytestmark = pytest.mark.asyncio(loop_scope="module")
K = VerdictKind


def call(*tests: FunctionTest, limits: Limits | None = None) -> FunctionGrader:
    return FunctionGrader(entry_point="f", tests=tests, limits=limits or Limits())


def run(stdout: str, times: int = 1, limits: Limits | None = None) -> StdioGrader:
    return StdioGrader(tests=(StdioTest(stdout=stdout),) * times, limits=limits or Limits())


SCAN = r"""
import re

def scan(pattern):
    found = []
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            parts = line.split()
            low, high = (int(x, 16) for x in parts[0].split("-"))
            if "rw" in parts[1]:
                try:
                    memory.seek(low)
                    found += re.findall(pattern, memory.read(high - low))
                except (OSError, ValueError, OverflowError):
                    pass
    return found
"""


async def test_no_job_finds_the_answer_of_the_one_before(judge: Judge) -> None:
    """Attack 3: in a group of answers to one task, the neighbour's right answer is worth stealing."""
    honest = """
import sys

def f(n):
    print("NEAR<%d>" % n)
    sys.stderr.write("NEAR<%d>" % n * 500)
    return ["NEAR<%d>" % n] * 50
"""
    thief = SCAN + '\n\ndef f(n):\n    return len(scan(b"NE" + rb"AR<(\\d+)>"))\n'
    for number in range(8):
        await judge.judge(honest, call(FunctionTest.of([70_000 + number], [])))
        result = await judge.judge(thief, call(FunctionTest.of([number], 0)))
        assert kinds(result) == [K.ACCEPTED], result.tests[0].detail


async def test_no_job_finds_the_tests_of_the_one_before(judge: Judge) -> None:
    """Attack 4: the report of a failed hidden test holds its source line and the expected value."""
    files = {
        "test_it.py": "import unittest\nfrom solution import f\n\nclass T(unittest.TestCase):\n"
        "    def test_it(self):\n        self.assertEqual(f(3), 61234567)\n"
    }
    thief = (
        SCAN + '\n\ndef f(n):\n    found = scan(rb"6123" + rb"45\\d\\d")\n    return int(found[0]) if found else 0\n'
    )
    for _ in range(4):
        result = await judge.judge(thief, UnittestGrader(files=files, hidden=True))
        assert kinds(result) == [K.WRONG_ANSWER]


async def test_process_ids_tell_nothing_of_the_job_before(judge: Judge) -> None:
    """Attack 6: the counter of process ids is a place to leave a number in."""
    program = """
import os

def f(n):
    for _ in range(n):
        if os.fork() == 0:
            os._exit(0)
        os.wait()
    return os.getpid()
"""
    seen: list[str] = []
    for forks in (0, 7, 0, 40, 0):
        result = await judge.judge(program, call(FunctionTest.of([forks], -1)))
        seen.append(result.tests[0].detail.split("returned ")[1].split(",")[0])
    assert len(set(seen)) == 1, seen


async def test_memory_of_one_job_does_not_burden_the_next(judge: Judge) -> None:
    """Attack 50: descriptors in flight in a ring of sockets live until the kernel's collector runs."""
    leave = """
import os, socket
big = os.memfd_create("x")
for _ in range(70):
    os.write(big, b"x" * (1 << 20))
left, right = socket.socketpair()
socket.send_fds(left, [b"x"], [big, left.fileno(), right.fileno()])
socket.send_fds(right, [b"x"], [big, left.fileno(), right.fileno()])
print(1)
"""
    limits = Limits(memory_bytes=128 << 20)
    for _ in range(3):
        assert kinds(await judge.judge(leave, run("1", limits=limits))) == [K.ACCEPTED]
        honest = await judge.judge("print(len(bytearray(90 << 20)))", run(str(90 << 20), limits=limits))
        assert kinds(honest) == [K.ACCEPTED]


async def test_what_is_handed_back_can_be_sent(judge: Judge) -> None:
    """Attack 13: half characters in every text that a program can get into a verdict."""
    program = "class \ud7ffOdd(Exception): pass\n\ndef f(x):\n    raise Exception('\\ud800' * 10, '\\udfff')\n"
    check = CheckGrader(entry_point="f", program="def check(f):\n    assert f(1) == 1, f\n")
    files = {
        "test_it.py": "import unittest\nfrom solution import f\n\nclass T(unittest.TestCase):\n"
        "    def test_it(self):\n        self.assertEqual(f(1), 1)\n"
    }
    returned = "def f(x):\n    return '\\ud800'\n"
    for grader in (call(FunctionTest.of([1], 1)), check, UnittestGrader(files=files)):
        for source in (program, returned):
            result = await judge.judge(source, grader)
            _, feedback = score(result.kind, result.tests, result.compile_log)
            assert msgspec.json.encode([result.tests, result.compile_log, feedback])
    noise = await judge.judge("import os\nos.write(2, b'\\xff\\xfe\\xed\\xa0\\x80')\nraise SystemExit(1)", run("1"))
    assert msgspec.json.encode(noise.tests)


COLLIDE = """
import os, sys

def f(x):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if hasattr(value, "nonce") and hasattr(value, "write"):
                numbers = [7 + i * (2**61 - 1) for i in range(30000)]
                text = b",".join(b"%d" % n for n in numbers)
                if x:
                    text = b",".join(b"[%d,0]" % n for n in numbers)
                value.write("value", b'{"d":[' + text + b"]}" if x else b'{"s":[' + text + b"]}")
                os._exit(0)
        frame = frame.f_back
"""


@pytest.mark.timeout(120)
async def test_numbers_of_one_hash_do_not_hold_the_service_up(judge: Judge) -> None:
    """Attack 11: thirty thousand whole numbers that Python's tables put into one place."""
    expected = list(range(100_000, 170_000))
    tests = (FunctionTest.of([0], expected), FunctionTest.of([1], expected))
    started = time.monotonic()
    assert kinds(await judge.judge(COLLIDE, call(*tests))) != [K.ACCEPTED, K.ACCEPTED]
    assert time.monotonic() - started < 15


async def test_long_whole_numbers_are_judged(judge: Judge) -> None:
    """Attack 79, for a false 0.0: more digits than Python reads from outside."""
    text = b"7" * 9_001
    program = "def f(x):\n    return x\n\n\ndef g(x):\n    return x + 1\n"
    test = FunctionTest(args=msgspec.Raw(b"[" + text + b"]"), expected=msgspec.Raw(text))
    assert kinds(await judge.judge(program, call(test))) == [K.ACCEPTED]
    wrong = FunctionGrader(entry_point="g", tests=(test,))
    assert kinds(await judge.judge(program, wrong)) == [K.WRONG_ANSWER]


async def test_check_is_not_passed_by_an_object_that_agrees(judge: Judge) -> None:
    """Attack 29, in HumanEval's form."""
    liar = """
class L:
    def __sub__(self, other): return 0.0
    __rsub__ = __abs__ = __round__ = __truediv__ = __sub__
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __eq__ = __contains__ = __lt__
    def __hash__(self): return 1

class F(float):
    __sub__, __rsub__, __abs__, __lt__, __gt__ = L.__sub__, L.__rsub__, L.__abs__, L.__lt__, L.__gt__

def f(x):
    return L() if x else F("nan")
"""
    for x in (0, 1):
        for line in ("abs(f({x}) - 3.14) < 1e-6", "abs(3.14 - f({x})) < 1e-6", "f({x}) > 3", "5 in [f({x})]"):
            text = f"def check(f):\n    assert {line.format(x=x)}\n"
            assert kinds(await judge.judge(liar, CheckGrader(entry_point="f", program=text))) != [K.ACCEPTED], line


async def test_feedback_names_no_path_of_the_host_and_nothing_hidden(judge: Judge) -> None:
    """Attack 78."""
    result = await judge.judge("import json\njson.loads('x')", run("1"))
    assert "JSONDecodeError" in result.tests[0].detail
    assert "/root" not in result.tests[0].detail
    assert str(Path(os.__file__).parent) not in result.tests[0].detail
    hidden = StdioGrader(tests=(StdioTest(stdin="in-17", stdout="out-17", hidden=True, name="name-17"),))
    result = await judge.judge("print(input())\nimport sys\nsys.exit(input())", hidden)
    _, feedback = score(result.kind, result.tests, result.compile_log)
    assert "17" not in feedback
    assert "17" not in result.tests[0].detail


async def test_a_checker_is_not_talked_into_it(judge: Judge) -> None:
    """Attack 80: output that crashes, floods or steers the checker is not accepted."""
    checker = Checker(program="import sys\nout = open(sys.argv[2]).read()\nsys.exit(0 if int(out) == 7 else 1)\n")
    grader = StdioGrader(tests=(StdioTest(stdout="7"),), checker=checker)
    for program in (
        "print('accepted'); print('7 7')",
        "import sys; sys.stdout.buffer.write(b'\\xff7')",
        "print('7' * 5000)",
        "print('\\x00' * 1000000)",
        "print(7); raise SystemExit(1)",
        "print(7, flush=True); import os; os.kill(os.getpid(), 9)",
        "print('import sys; sys.exit(0)')",
    ):
        assert kinds(await judge.judge(program, grader)) != [K.ACCEPTED], program
    assert kinds(await judge.judge("print(7)", grader)) == [K.ACCEPTED]


async def test_a_parametrised_test_needs_all_its_parameters(judge: Judge) -> None:
    """Attack 85: the first parameter passes, the second never ends."""
    files = {
        "test_it.py": "import pytest\nfrom solution import f\n\n@pytest.mark.parametrize('x', [1, 2, 3])\n"
        "def test_it(x):\n    assert f(x) == x\n"
    }
    grader = UnittestGrader(files=files, limits=Limits(cpu_seconds=1, wall_seconds=6))
    result = await judge.judge("def f(x):\n    while x == 2:\n        pass\n    return x\n", grader)
    assert kinds(result) == [K.TIME_LIMIT]
    assert kinds(await judge.judge("def f(x):\n    return x\n", grader)) == [K.ACCEPTED]


PYTEST = """
import time
import pytest
from solution import f

def test_value():
    assert f(5) == 6

def test_error():
    assert f(1) == 2

def test_end():
    assert f(2) == 2

def test_after_the_end():
    time.sleep(0.2)
    with pytest.raises(Exception):
        f(3)
"""


async def test_pytest_feedback_is_about_the_test_and_nothing_passes_after_the_end(judge: Judge) -> None:
    """Attack 87: the answer leaves; a later test that wants an error of any kind gets none."""
    answer = """
import os
def f(x):
    if x == 1:
        raise ValueError("odd")
    if x == 2:
        os._exit(3)
    return x
"""
    result = await judge.judge(answer, UnittestGrader(files={"test_it.py": PYTEST}))
    assert K.ACCEPTED not in kinds(result)
    value, error, end, after = (test.detail for test in result.tests)
    assert "E   assert 5 == 6" in value
    assert "E   ValueError: odd" in error
    assert "ended before it answered" in end
    assert "ended before it was asked" in after
    assert not any("/headwater" in detail for detail in (value, error, end, after))


async def test_a_helper_that_the_task_gives_is_the_tasks(judge: Judge) -> None:
    """Attack 86: HumanEval checks `find_zero` with the prompt's `poly`; an answer brings another `poly`."""
    for problem in problems():
        if problem.grader.program == problem.test:
            continue
        honest = problem.prompt + problem.canonical_solution
        assert kinds(await judge.judge(honest, problem.grader)) == [K.ACCEPTED], problem.task_id
        bent = {
            "find_zero": "def poly(xs, x):\n    return 0.0\n\ndef find_zero(xs):\n    return 0.0\n",
            "decode_cyclic": "def encode_cyclic(s):\n    return s\n\ndef decode_cyclic(s):\n    return s\n",
            "decode_shift": "def encode_shift(s):\n    return s\n\ndef decode_shift(s):\n    return s\n",
        }[problem.entry_point]
        assert kinds(await judge.judge(bent, problem.grader)) == [K.WRONG_ANSWER], problem.task_id


def children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def kill(pids: set[int]) -> None:
    """Kill processes, and give them time to die before the loop can notice."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.3)


async def test_a_jail_that_died_idle_is_nobodys_fault() -> None:
    """Attack 57: the next job gets another jail."""
    add = call(FunctionTest.of([1], 2))
    before = children()
    async with Judge(1) as own:
        assert kinds(await own.judge("def f(x):\n    return x + 1", add)) == [K.ACCEPTED]
        kill(children() - before)
        assert kinds(await own.judge("def f(x):\n    return x + 1", add)) == [K.ACCEPTED]


ORDINARY = """
import asyncio, json
from sandbox import Judge
from schemas import *

HOSTILE = '''
import os, resource, signal
def f(kind):
    done = []
    for pid in (1, os.getppid()):
        for act in (
            [lambda: os.kill(pid, signal.SIGINT)],
            [lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))],
            [lambda: os.setpriority(os.PRIO_PROCESS, pid, 19), lambda: os.sched_setaffinity(pid, {0})],
        )[kind]:
            try:
                act()
                done.append(kind)
            except OSError:
                pass
    return 0
'''

async def main():
    seen = []
    async with Judge(1, allow_unenforced=frozenset({"memory", "pids", "cpu", "uids"})) as judge:
        for kind in range(3):
            tests = (FunctionTest.of([kind], 0),) * 2
            seen.append((await judge.judge(HOSTILE, FunctionGrader(entry_point="f", tests=tests))).kind.value)
            honest = FunctionGrader(entry_point="f", tests=(FunctionTest.of([1], 2),))
            seen.append((await judge.judge("def f(x): return x + 1", honest)).kind.value)
    print(json.dumps(seen))

asyncio.run(main())
"""


def as_an_ordinary_user(script: str) -> str:
    """What a Python script prints that runs as nobody."""
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", script]
    if not reachable(sys.base_prefix):
        home = "/" + Path(sys.base_prefix).parts[1]
        show = (
            f"mount --bind {sys.base_prefix} /mnt; mount -t tmpfs -o mode=755 none {home}; "
            f'mkdir -p {sys.base_prefix}; mount --bind /mnt {sys.base_prefix}; exec "$0" "$@"'
        )
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", show, *command]
    root = Path(__file__).parents[3]
    environment = {"PYTHONPATH": str(root), "PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become an ordinary user")
async def test_an_ordinary_users_init_is_out_of_reach() -> None:
    """Attack 77: without uids of their own, programs share the user of the jail's first process."""
    assert json.loads(as_an_ordinary_user(ORDINARY)) == ["accepted"] * 6
