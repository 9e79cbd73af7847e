"""The service on real nsjail: verdicts, trust, limits, and what it leaves behind."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sandbox import GraderFault, Judge, SandboxUnavailable
from sandbox.cases import host_checks
from schemas import (
    CheckGrader,
    ExactGrader,
    FunctionGrader,
    FunctionTest,
    Grader,
    Limits,
    NamedTest,
    StdioGrader,
    StdioTest,
    UnittestGrader,
    VerdictKind,
)
from tests.integration.sandbox.programs import CHEATS, CLASS_LIAR, LIAR, QUESTIONS, STACK, STACK_TESTS

pytestmark = pytest.mark.asyncio(loop_scope="module")
K = VerdictKind
NONE = Limits()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judge() -> AsyncIterator[Judge]:
    async with Judge(2) as judge:
        yield judge


def calls(*tests: tuple[list[object], object], limits: Limits = NONE) -> FunctionGrader:
    return FunctionGrader(entry_point="f", tests=tuple(FunctionTest.of(*test) for test in tests), limits=limits)


def check(program: str, entry_point: str = "f", limits: Limits = NONE) -> CheckGrader:
    return CheckGrader(entry_point=entry_point, program=program, limits=limits)


async def kinds(judge: Judge, program: str, grader: Grader) -> list[VerdictKind]:
    result = await judge.judge(program, grader)
    return [test.kind for test in result.tests] or [result.kind]


async def test_function(judge: Judge) -> None:
    grader = calls(([1], 2), ([2], 4), ([0], 1))
    assert await kinds(judge, "def f(x):\n    return 1 // x + 1", grader) == [
        K.ACCEPTED,
        K.WRONG_ANSWER,
        K.RUNTIME_ERROR,
    ]


async def test_feedback_shows_what_a_visible_test_wanted(judge: Judge) -> None:
    result = await judge.judge("def f(x):\n    return x + 1", calls(([2], 4)))
    assert result.tests[0].detail == "f(2) returned 3, expected 4"


async def test_a_hidden_test_tells_nothing(judge: Judge) -> None:
    grader = FunctionGrader(entry_point="f", tests=(FunctionTest.of([2], 4, hidden=True),))
    result = await judge.judge("def f(x):\n    return x + 1", grader)
    assert (result.tests[0].kind, result.tests[0].detail) == (K.WRONG_ANSWER, "")


@pytest.mark.parametrize("program", ["def f(x) return", "def f(x):\n  return '\x00'", "(" * 100_000, "é = \ud800"])
async def test_a_syntax_error_is_a_compile_error_in_every_mode(judge: Judge, program: str) -> None:
    for grader in (
        calls(([1], 1)),
        StdioGrader(tests=(StdioTest(stdout="1"),)),
        check("def check(f): assert f(1) == 1"),
        UnittestGrader(files={"test_a.py": "from solution import f\ndef test_a(): assert f(1)"}),
    ):
        result = await judge.judge(program, grader)
        assert (result.kind, result.tests) == (K.COMPILE_ERROR, ())
        assert 0 < len(result.compile_log) < 4001


async def test_stdio_in_c_and_cpp(judge: Judge) -> None:
    tests = (StdioTest(stdin="3", stdout="4\n"), StdioTest(stdin="9", stdout="9\n"))
    c = '#include <stdio.h>\nint main(void) { int n; scanf("%d", &n); printf("%d", n + 1); return 0; }'
    cpp = "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << n + 1; }"
    assert await kinds(judge, c, StdioGrader(tests=tests, language="c")) == [K.ACCEPTED, K.WRONG_ANSWER]
    assert await kinds(judge, cpp, StdioGrader(tests=tests, language="cpp")) == [K.ACCEPTED, K.WRONG_ANSWER]


async def test_without_a_compiler_for_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.jail.launcher.built", lambda: None)
    grader = StdioGrader(tests=(StdioTest(stdin="3", stdout="3"), StdioTest(stdin="4", stdout="3")), language="bash")
    async with Judge(1, ahead=None) as judge:
        assert await kinds(judge, "read n; echo $n", grader) == [K.ACCEPTED, K.WRONG_ANSWER]


@pytest.mark.parametrize("launched", [True, False])
async def test_confinement_of_programs_that_are_started(launched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not launched:
        monkeypatch.setattr("sandbox.jail.launcher.built", lambda: None)
    program = """
    while read -r name value; do
        case $name in (Uid:|Cap*|NoNewPrivs:|Seccomp:) echo $name $value;; esac
    done < /proc/self/status
    for place in / /usr /build /headwater /proc; do : 2>/dev/null > $place/x && echo wrote $place; done
    for pid in /proc/[0-9]*; do [ $pid = /proc/$$ ] || echo sees $pid; done
    for fd in /proc/self/fd/*; do [ ${fd##*/} -le 2 ] || [ ${fd##*/} = 255 ] || [ ! -e $fd ] || echo holds $fd; done
    echo $PWD $HOME $(umask) $(ulimit -c)
    """
    expected = """
Uid: 1000 1000 1000 1000
CapInh: 0000000000000000
CapPrm: 0000000000000000
CapEff: 0000000000000000
CapBnd: 0000000000000000
CapAmb: 0000000000000000
NoNewPrivs: 1
Seccomp: 2
/tmp/work /tmp/work 0022 0
"""
    async with Judge(1, ahead=None) as judge:
        result = await judge.judge(program, StdioGrader(tests=(StdioTest(stdout=expected.strip()),), language="bash"))
    assert [test.kind for test in result.tests] == [K.ACCEPTED], result.tests[0].detail


@pytest.mark.parametrize("language", ["cpp", "bash"])
async def test_a_program_is_compiled_once(language: str, tmp_path: Path) -> None:
    program = {
        "cpp": "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << n + 1; }",
        "bash": "read n; echo $((n + 1))",
    }[language]
    grader = StdioGrader(tests=(StdioTest(stdin="3", stdout="4"), StdioTest(stdin="3", stdout="3")), language=language)
    async with Judge(1, ahead=None, compile_cache=tmp_path) as judge:
        first = await judge.judge(program, grader)
        again = await judge.judge(program, grader)
        other = await judge.judge(program + "\n", grader)
    assert [test.kind for test in first.tests] == [test.kind for test in again.tests] == [K.ACCEPTED, K.WRONG_ANSWER]
    assert set(first.parts) == {"start", "compile", "cache", "run"}
    assert set(again.parts) == {"cache", "run"}
    assert "compile" in other.parts
    assert first.jail_seconds == pytest.approx(sum(first.parts.values()))


async def test_true_statuses(judge: Judge) -> None:
    tests = (
        StdioTest(stdin="abort", stdout=""),
        StdioTest(stdin="segv", stdout=""),
        StdioTest(stdin="exit", stdout=""),
    )
    program = """
    #include <stdio.h>
    #include <stdlib.h>
    #include <signal.h>
    int main(void) {
        int c = getchar();
        if (c == 'a') abort();
        if (c == 's') raise(SIGSEGV);
        exit(7);
    }"""
    result = await judge.judge(program, StdioGrader(tests=tests, language="c"))
    assert [(test.kind, test.signal, test.exit_status) for test in result.tests] == [
        (K.RUNTIME_ERROR, signal.SIGABRT, None),
        (K.RUNTIME_ERROR, signal.SIGSEGV, None),
        (K.RUNTIME_ERROR, None, 7),
    ]


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("import sys\nsys.exit()", 0),
        ("exit(3)", 3),
        ("raise SystemExit('bye')", 1),
        ("1 / 0", 1),
        ("import atexit, sys\natexit.register(print, 'end')\nsys.exit(2)", 2),
        ("import threading\nthreading.Thread(target=print, args=('late',)).start()", 0),
        ("import sys\nsys.stdout.close()", 0),
        ("import os\nos.abort()", None),
    ],
)
async def test_python_ends_as_it_does_outside(judge: Judge, program: str, status: int | None) -> None:
    result = await judge.judge(program, StdioGrader(tests=(StdioTest(stdout=""),)))
    assert result.tests[0].exit_status == status


async def test_what_python_flushes_at_its_end_is_there(judge: Judge) -> None:
    program = (
        "import atexit\natexit.register(print, 'end')\n"
        "class D:\n    def __del__(self): print('gone')\nd = D()\nprint('go')"
    )
    assert await kinds(judge, program, StdioGrader(tests=(StdioTest(stdout="go\nend\ngone\n"),))) == [K.ACCEPTED]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("while True: pass", K.TIME_LIMIT),
        ("import time; time.sleep(60)", K.TIME_LIMIT),
        ("x = bytearray(1 << 30)", K.MEMORY_LIMIT),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", K.OUTPUT_LIMIT),
        ("import os, time\nfor _ in range(100):\n    if os.fork() == 0: time.sleep(60)", K.PROCESS_LIMIT),
        ("open('big', 'wb').write(bytes(32 << 20))", K.RUNTIME_ERROR),
    ],
)
async def test_limits(judge: Judge, body: str, kind: VerdictKind) -> None:
    limits = Limits(
        cpu_seconds=1.5, wall_seconds=4.0, memory_bytes=128 << 20, processes=16, output_bytes=65536, disk_bytes=16 << 20
    )
    assert await kinds(judge, body, StdioGrader(tests=(StdioTest(stdout=""),), limits=limits)) == [kind]
    assert host_checks.judged_processes(judge.site) == []


async def test_costs_are_reported(judge: Judge) -> None:
    program = "x = b'x' * (100 << 20)\nwhile __import__('time').process_time() < 0.3: pass"
    result = await judge.judge(program, StdioGrader(tests=(StdioTest(stdout=""),)))
    test = result.tests[0]
    assert 0.28 < test.cpu_seconds < 1.0
    assert test.wall_seconds > 0.28
    assert 100 << 20 < test.peak_memory_bytes < 140 << 20
    assert result.jail_seconds >= test.cpu_seconds


async def test_check_programs(judge: Judge) -> None:
    program = "def check(candidate):\n    assert candidate(2) == 3\n    assert candidate(5) == 6"
    assert await kinds(judge, "def f(x):\n    return x + 1", check(program)) == [K.ACCEPTED]
    assert await kinds(judge, "def f(x):\n    return x", check(program)) == [K.WRONG_ANSWER]
    assert await kinds(judge, "def f(x):\n    return {}[x]", check(program)) == [K.RUNTIME_ERROR]
    assert await kinds(judge, "def g(x):\n    return x", check(program)) == [K.RUNTIME_ERROR]


async def test_plain_assertions_are_a_check(judge: Judge) -> None:
    doubles = check("assert f(2) == 4\nassert f([1]) == [1, 1]")
    assert await kinds(judge, "def f(x):\n    return x * 2", doubles) == [K.ACCEPTED]
    result = await judge.judge("def f(x):\n    return x", check("assert f(2) == 4, 'doubled'"))
    assert (result.kind, result.tests[0].detail) == (K.WRONG_ANSWER, "assert f(2) == 4, 'doubled'\ndoubled")


@pytest.mark.parametrize("name", CHEATS)
async def test_no_answer_cheats_the_tests_that_must_be_inside(judge: Judge, name: str) -> None:
    program = "def check(candidate):\n    assert candidate(2) == 3\n    assert abs(candidate(2) - 3) < 1e-6"
    assert await kinds(judge, CHEATS[name], check(program)) in ([K.WRONG_ANSWER], [K.RUNTIME_ERROR])
    test = "class T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(2), 3)\n"
    files = {"test_a.py": f"import unittest\nfrom solution import f\n{test}"}
    assert await kinds(judge, CHEATS[name], UnittestGrader(files=files)) in ([K.WRONG_ANSWER], [K.RUNTIME_ERROR])


@pytest.mark.parametrize("question", QUESTIONS)
async def test_an_object_never_learns_what_it_is_compared_with(judge: Judge, question: str) -> None:
    for liar in (LIAR, CLASS_LIAR):
        kind = (await judge.judge(liar, check(f"def check(f):\n    assert {question}"))).kind
        assert kind in (K.WRONG_ANSWER, K.RUNTIME_ERROR)
        files = {"test_a.py": f"from solution import f\ndef test_a():\n    assert {question}\n"}
        assert (await judge.judge(liar, UnittestGrader(files=files))).kind in (K.WRONG_ANSWER, K.RUNTIME_ERROR)


async def test_plain_values_in_subclasses_are_computed_with(judge: Judge) -> None:
    program = "class N(float): pass\nclass L(list): pass\ndef f(x): return N(3.0) if x == 2 else L([1, 2])"
    test = "assert abs(f(2) - 3) < 1e-6 and f(2) < 4 and 1 in f(1) and f(1) + [3] == [1, 2, 3] and f(1).count(2) == 1"
    assert await kinds(judge, program, check(test)) == [K.ACCEPTED]


async def test_an_honest_class_passes_every_kind_of_test(judge: Judge) -> None:
    result = await judge.judge(STACK, UnittestGrader(files={"test_stack.py": STACK_TESTS}))
    assert [(test.name, test.detail) for test in result.tests if test.kind is not K.ACCEPTED] == []
    assert len(result.tests) == 9


async def test_unittest_names_weights_and_hidden_tests(judge: Judge) -> None:
    files = {
        "test_a.py": "from solution import f\ndef test_one(): assert f(1) == 1\ndef test_two(): assert f(2) == 3\n"
    }
    special = (NamedTest(id="test_a.py::test_two", hidden=True, weight=2.0, required=True),)
    result = await judge.judge("def f(x):\n    return x", UnittestGrader(files=files, tests=special))
    assert [(test.name, test.kind, test.hidden, test.weight, test.required) for test in result.tests] == [
        ("test_a.py::test_one", K.ACCEPTED, False, 1.0, False),
        ("test_a.py::test_two", K.WRONG_ANSWER, True, 2.0, True),
    ]
    assert result.tests[1].detail == ""


PYTEST_FILE = """
import pytest
from solution import f

@pytest.fixture
def two():
    yield 2

@pytest.mark.parametrize("x", [1, 2, 3])
def test_all(x):
    assert f(x) == x + 1

@pytest.mark.parametrize("x", [1, 9])
def test_some(x):
    assert f(x) < 5

def test_fixture(two, tmp_path):
    (tmp_path / "x").write_text("x")
    assert f(two) == pytest.approx(3.0)

def test_raises():
    with pytest.raises(TypeError):
        f("a")

@pytest.mark.skip
def test_skipped():
    pass

class TestGroup:
    def test_in_class(self, two):
        assert f(two) == two + 1
"""


async def test_files_that_use_pytest(judge: Judge) -> None:
    result = await judge.judge("def f(x):\n    return x + 1", UnittestGrader(files={"test_a.py": PYTEST_FILE}))
    assert {test.name.removeprefix("test_a.py::"): test.kind for test in result.tests} == {
        "test_all": K.ACCEPTED,
        "test_some": K.WRONG_ANSWER,
        "test_fixture": K.ACCEPTED,
        "test_raises": K.ACCEPTED,  # and one that the file marks as skipped is left out
        "TestGroup::test_in_class": K.ACCEPTED,
    }
    for program in ("import os\ndef f(x): os._exit(0)", "import os\nos._exit(0)"):
        cheat = await judge.judge(program, UnittestGrader(files={"test_a.py": PYTEST_FILE}))
        assert {test.kind for test in cheat.tests} <= {K.WRONG_ANSWER, K.RUNTIME_ERROR}


async def test_support_files_are_beside_the_answer_and_the_tests(judge: Judge) -> None:
    files = {
        "test_a.py": "from solution import f\nfrom helper import N\n"
        "def test_a(): assert f() == N + 1 and open('data.txt').read() == 'x'",
        "helper.py": "N = 1",
        "data.txt": "x",
    }
    program = "from helper import N\ndef f():\n    return N + len(open('data.txt').read())"
    assert await kinds(judge, program, UnittestGrader(files=files)) == [K.ACCEPTED]


async def test_queue_time_is_no_run_time() -> None:
    grader = StdioGrader(tests=(StdioTest(stdout=""),), limits=Limits(cpu_seconds=1.0, wall_seconds=1.5))
    async with Judge(1) as judge:
        results = await asyncio.gather(*(judge.judge("import time; time.sleep(0.5)", grader) for _ in range(5)))
    assert [result.kind for result in results] == [K.ACCEPTED] * 5


async def test_cancelling_kills_what_runs(judge: Judge) -> None:
    task = asyncio.create_task(judge.judge("import time; time.sleep(60)", StdioGrader(tests=(StdioTest(stdout=""),))))
    while not host_checks.judged_processes(judge.site):  # noqa: ASYNC110 - looks at the kernel's list, which tells nobody
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert host_checks.judged_processes(judge.site) == []
    assert await kinds(judge, "def f(x):\n    return x", calls(([1], 1))) == [K.ACCEPTED]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


async def test_a_jail_killed_from_outside_costs_nobody_a_verdict(judge: Judge) -> None:
    grader = StdioGrader(tests=(StdioTest(stdout="done"),))
    task = asyncio.create_task(judge.judge("import time; time.sleep(1); print('done')", grader))
    while not (pids := host_checks.judged_processes(judge.site)):  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)
    os.kill(parent_of(pids[0]), signal.SIGKILL)
    assert (await task).kind is K.ACCEPTED


async def test_nothing_is_left_when_a_judge_ends() -> None:
    async with Judge(2) as judge:
        site = judge.site
        await judge.judge("import time; time.sleep(0.1)", StdioGrader(tests=(StdioTest(stdout=""),)))
        assert len(host_checks.groups_of(site)) > 0
    assert (host_checks.groups_of(site), host_checks.mounts_of(site), host_checks.files_of_jails(site)) == ([], [], [])


async def test_every_job_in_a_new_jail_where_that_is_wanted() -> None:
    async with Judge(1, jobs_per_jail=1) as judge:
        for _ in range(3):
            assert await kinds(judge, "def f(x):\n    return x", calls(([1], 1))) == [K.ACCEPTED]


async def test_faults_name_their_reason(judge: Judge) -> None:
    with pytest.raises(GraderFault, match="no such language: 'cobol'"):
        await judge.judge("x", StdioGrader(tests=(StdioTest(stdout=""),), language="cobol"))
    with pytest.raises(GraderFault, match="need no sandbox"):
        await judge.judge("x", ExactGrader(answer="1"))
    with pytest.raises(GraderFault, match="test program does not compile"):
        await judge.judge("def f(): pass", check("def check(:"))
    with pytest.raises(GraderFault, match="hold no test"):
        await judge.judge("def f(): pass", UnittestGrader(files={"test_a.py": "x = 1"}))


async def test_an_absent_toolchain_is_a_fault_that_names_it(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.languages.toolchains.shutil.which", lambda name: None)
    with pytest.raises(GraderFault, match=r"rustc is not installed here .*apt install rustc"):
        await judge.judge("fn main() {}", StdioGrader(tests=(StdioTest(stdout=""),), language="rust"))


async def test_a_host_that_cannot_enforce_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox.jail import controlgroups

    monkeypatch.setattr(controlgroups, "probe", lambda: controlgroups.Hierarchy(0))
    with pytest.raises(SandboxUnavailable, match=r"memory .*pids .*cpu "):
        async with Judge(1):
            pass
    with pytest.raises(ValueError, match="'everything' is none of"):
        Judge(1, allow_unenforced=frozenset({"everything"}))


async def test_without_control_groups_where_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox.jail import controlgroups

    monkeypatch.setattr(controlgroups, "probe", lambda: controlgroups.Hierarchy(0))
    allowed = frozenset({"memory", "pids", "cpu"})
    async with Judge(1, allow_unenforced=allowed) as judge:
        limits = Limits(cpu_seconds=0.5, wall_seconds=2.0)
        assert await kinds(judge, "def f(x):\n    return x", calls(([1], 1), limits=limits)) == [K.ACCEPTED]
        assert await kinds(judge, "def f(x):\n    while True: pass", calls(([1], 1), limits=limits)) == [K.TIME_LIMIT]
