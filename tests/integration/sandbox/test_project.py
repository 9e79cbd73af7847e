"""The `project` grader: honest answers, and attacks 82 and 88 to 93 of `sandbox/ATTACKS.md`."""

import json
from typing import Any

import msgspec
import pytest

from sandbox import GraderFault, Judge, score
from schemas import Limits, NamedTest, ProjectGrader, StdioGrader, StdioTest, VerdictKind
from tests.integration.sandbox.programs import kinds

pytestmark = pytest.mark.asyncio(loop_scope="module")
K = VerdictKind


FILES = {"calc/__init__.py": "", "calc/core.py": "def add(a, b):\n    return a - b\n", "README": "calc\n"}
TESTS = {
    "tests/run.py": """
import subprocess
SOURCE = "import sys; from calc.core import add; print(add(*map(int, sys.argv[1:])))"
with open(3, "w") as report:
    for name, words, expected in (("adds", ["1", "2"], "3\\n"), ("zero", ["0", "0"], "0\\n")):
        told = subprocess.run(["answer", "python3", "-c", SOURCE, *words], stdout=subprocess.PIPE, text=True)
        print("PASS" if told.stdout == expected else "FAIL", name, file=report)
"""
}
PROJECT = ProjectGrader(
    files=FILES,
    test_files=TESTS,
    build="python3 -m compileall -q calc",
    test="python3 tests/run.py",
    tests=(NamedTest(id="adds"), NamedTest(id="zero")),
)
FIX = """--- a/calc/core.py
+++ b/calc/core.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
STOP = FIX.replace("return a + b", "raise SystemExit(0)")
OWN_TESTS = '{"tests/run.py": "print(\'PASS adds\\\\nPASS zero\')"}'


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        (FIX, [K.ACCEPTED, K.ACCEPTED]),
        ('{"calc/core.py": "def add(a, b): return 0"}', [K.WRONG_ANSWER, K.ACCEPTED]),
        (STOP, [K.WRONG_ANSWER, K.WRONG_ANSWER]),
        (OWN_TESTS, [K.WRONG_ANSWER, K.ACCEPTED]),
        ('{"tests": "a file where a folder was"}', [K.WRONG_ANSWER, K.ACCEPTED]),
    ],
)
async def test_a_project(judge: Judge, answer: str, kinds: list[VerdictKind]) -> None:
    result = await judge.judge(answer, PROJECT)
    assert [test.kind for test in result.tests] == kinds, result


@pytest.mark.parametrize(
    ("answer", "log"),
    [
        ('{"calc/core.py": "def add("}', "SyntaxError"),
        (FIX.replace("a - b", "a * b"), "does not fit"),
        ("I would fix it", "neither"),
    ],
)
async def test_a_project_that_does_not_build(judge: Judge, answer: str, log: str) -> None:
    result = await judge.judge(answer, PROJECT)
    assert result.kind is K.COMPILE_ERROR
    assert log in result.compile_log
    assert score(result.kind, result.tests, result.compile_log)[0] == -1.0


APART = ProjectGrader(
    files={"add.py": ""},
    test_files={
        "run.py": """
import subprocess
report = open(3, "w")
for name, words, expected in (("small", ["1", "2"], b"3\\n"), ("large", ["70", "7"], b"77\\n")):
    ended = subprocess.run(["answer", "python3", "add.py", *words], stdout=subprocess.PIPE, timeout=5)
    print("PASS" if ended.returncode == 0 and ended.stdout == expected else "FAIL", name, file=report, flush=True)
"""
    },
    test="python3 run.py",
    tests=(NamedTest(id="small"), NamedTest(id="large")),
    limits=Limits(cpu_seconds=4, wall_seconds=12),
)


SUM = "import sys\nprint(int(sys.argv[1]) + int(sys.argv[2]))\n"


PRINT = "print('PASS small\\nPASS large', flush=True)\n"


FORGE = """
import glob, os, signal, socket, sys
LINES = b"PASS small\\nPASS large\\n"
def put(end):
    try:
        os.write(os.open(end, os.O_WRONLY | os.O_NONBLOCK) if isinstance(end, str) else end, LINES)
    except OSError:
        pass
for end in [*range(64), *glob.glob("/proc/[0-9]*/fd/*"), "/dev/fd/3"]:
    put(end)
for place in ("/tmp/tests/run.py", "/tmp/tools/answer", "/tmp/tests", "/tmp/tools"):
    try:
        print(open(place).read())
    except OSError:
        pass
    try:
        os.rename(place, place + "x")
    except OSError:
        pass
"""


IMITATE = (
    FORGE
    + """
for pid in [int(one) for one in os.listdir("/proc") if one.isdigit()]:
    if pid != os.getpid():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\\0headwater-answer")
listener.listen()
while True:
    caller, _ = listener.accept()
    message, ends, _, _ = socket.recv_fds(caller, 1 << 17, 64)
    for end in ends:
        put(end)
    caller.send(bytes(4))
"""
)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (SUM, [K.ACCEPTED, K.ACCEPTED]),
        ("print(3)\n", [K.ACCEPTED, K.WRONG_ANSWER]),
        (SUM + "sys.exit(1)\n", [K.WRONG_ANSWER, K.WRONG_ANSWER]),
        ("import os, signal\nos.kill(-1, signal.SIGKILL)\n", [K.WRONG_ANSWER, K.WRONG_ANSWER]),
        ("import time\ntime.sleep(60)\n", [K.RUNTIME_ERROR, K.RUNTIME_ERROR]),
    ],
    ids=["honest", "half", "status", "kill", "sleep"],
)
async def test_a_project_is_judged_by_what_the_answer_prints(
    judge: Judge, answer: str, wanted: list[VerdictKind]
) -> None:
    result = await judge.judge(json.dumps({"add.py": answer}), APART)
    assert kinds(result) == wanted, result.tests


@pytest.mark.parametrize("answer", [PRINT, FORGE, IMITATE], ids=["print", "forge", "imitate"])
async def test_a_project_is_not_passed_by_forging(judge: Judge, answer: str) -> None:
    """Attack 82: lines printed, written to every descriptor in sight, and said by a false starter."""
    result = await judge.judge(json.dumps({"add.py": answer}), APART)
    assert K.ACCEPTED not in kinds(result), result.tests
    assert result.kind in (K.WRONG_ANSWER, K.RUNTIME_ERROR, K.TIME_LIMIT)


async def test_a_project_and_its_tests_cannot_load_each_other(judge: Judge) -> None:
    """Attack 82: each side's files are closed to the other, so no test command holds code of the answer's."""
    look = """
cat /build/add.py && echo PASS small >&3
cd /build && echo PASS small >&3
answer sh -c 'cat /tmp/tests/run.py || ls /tmp/tests || cat /proc/*/cmdline | grep run.py' && echo PASS large >&3
answer cat add.py > here && test "$(cat here)" = "print(1)" && test ! -x ./add.py
"""
    grader = msgspec.structs.replace(APART, test=look)
    result = await judge.judge(json.dumps({"add.py": "print(1)"}), grader)
    assert kinds(result) == [K.RUNTIME_ERROR, K.RUNTIME_ERROR], result.tests
    assert "exit status 1" not in result.tests[0].detail, result.tests


SAY = """
say() { if [ "$2" = "$3" ]; then echo "PASS $1" >&3; else echo "FAIL $1" >&3; fi; }
"""


async def test_a_project_answer_leaves_nothing_that_the_tests_load(judge: Judge) -> None:
    """Attack 88: the test command starts a Python of its own after the answer has run, and a pytest."""
    answer = """
import os, sys
evil = "import os\\nos.write(3, b'PASS small\\\\nPASS large\\\\n')\\nos._exit(0)\\n"
home = os.path.expanduser("~")
folder = f"{home}/.local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
for place in (folder, "/tmp", "/tmp/work", "/tests", "/tests/home", "/tests/files"):
    for name in ("usercustomize.py", "sitecustomize.py", "conftest.py", "pytest.ini", "json.py"):
        try:
            os.makedirs(place, exist_ok=True)
            with open(f"{place}/{name}", "w") as file:
                file.write(evil if name.endswith(".py") else "[pytest]\\naddopts = -p conftest\\n")
        except OSError:
            pass
"""
    files = {
        "check.py": "import json, os\nassert os.path.expanduser('~') == '/tests/home', os.environ\n",
        "test_it.py": "def test_it():\n    pass\n",
    }
    run = (
        "answer python3 add.py && python3 check.py && python3 -m pytest -q && "
        + SAY.strip()
        + "; say small 1 2; say large 1 2"
    )
    grader = msgspec.structs.replace(APART, test=run, test_files=files, limits=Limits(cpu_seconds=10))
    result = await judge.judge(json.dumps({"add.py": answer}), grader)
    assert kinds(result) == [K.WRONG_ANSWER, K.WRONG_ANSWER], result.tests


async def test_a_project_answer_gets_no_open_file(judge: Judge) -> None:
    """Attack 89: the test command reads its cases from a file and starts the answer meanwhile."""
    reading = """
import os, sys
for end in range(20):
    try:
        data = os.pread(end, 1000, 0) or b""
    except OSError:
        try:
            data = os.read(end, 1000)
        except OSError:
            continue
    for line in data.decode().split("\\n"):
        words = line.split()
        if words[1:3] == sys.argv[1:]:
            print(words[3])
"""
    loop = SAY + 'while read id a b want; do say $id "$(answer python3 add.py $a $b)" $want; done < cases.txt'
    files = {"cases.txt": "small 1 2 3\nlarge 70 7 77\n"}
    grader = msgspec.structs.replace(APART, test=loop, test_files=files)
    assert kinds(await judge.judge(json.dumps({"add.py": reading}), grader)) == [K.WRONG_ANSWER, K.WRONG_ANSWER]
    assert kinds(await judge.judge(json.dumps({"add.py": SUM}), grader)) == [K.ACCEPTED, K.ACCEPTED]


async def test_a_projects_answer_takes_and_gives_bytes(judge: Judge) -> None:
    """Three megabytes through `answer -i`, an input that it does not read, one that never comes, a closed output."""
    test = (
        SAY
        + """
say small "$(head -c 3000000 /dev/zero | answer -i cat | wc -c)" 3000000
head -c 3000000 /dev/zero | answer -i true
sleep 5 | answer -i echo early
answer sh -c 'head -c 3000000 /dev/zero' | head -c 1 | wc -c
answer sh -c 'exit 7'
status=$?
both=$(answer sh -c 'echo out; echo err >&2' 2>&1 >/dev/null)
say large "$status $both $(answer absent 2>/dev/null || echo $?)" "7 err 127"
"""
    )
    grader = msgspec.structs.replace(APART, test=test, limits=Limits(cpu_seconds=4, wall_seconds=20))
    result = await judge.judge(json.dumps({"add.py": SUM}), grader)
    assert kinds(result) == [K.ACCEPTED, K.ACCEPTED], result.tests


@pytest.mark.parametrize(
    "answer",
    [
        '{"\\ud800.pth": ""}',
        '{"a\\ud800": "x"}',
        '{"a": "\\ud800"}',
        "--- a/add.py\n+++ b/add.py\n@@ -1 +1," + "9" * 5000 + " @@\n+x\n",
    ],
    ids=["steering-surrogate", "path-surrogate", "text-surrogate", "digits"],
)
async def test_odd_project_answers_are_compile_errors(judge: Judge, answer: str) -> None:
    """Attacks 90 and 91: a result like any other, which can be sent."""
    for in_process in (False, True):
        result = await judge.judge(answer, msgspec.structs.replace(APART, in_process=in_process))
        assert result.kind is K.COMPILE_ERROR
        result.compile_log.encode()
        assert "/headwater" not in result.compile_log


async def test_a_project_says_nothing_of_hidden_tests(judge: Judge) -> None:
    """Attack 92: the visible test's feedback shows no word of what the hidden one's failure printed."""
    tests = (NamedTest(id="small"), NamedTest(id="large", hidden=True))
    grader = msgspec.structs.replace(APART, tests=tests, test="echo PASS small >&3; echo expected 77 >&2; exit 1")
    result = await judge.judge(json.dumps({"add.py": SUM}), grader)
    assert not any("77" in test.detail for test in result.tests)


@pytest.mark.parametrize(
    "changes",
    [
        {"test_files": {"a": "x", "a/b": "y"}},
        {"test_files": {"/x": "x"}},
        {"test_files": {"../x": "x"}},
        {"test_files": {"x": "\ud800"}},
        {"test": "true\0"},
        {"test": "true " + "x" * 200_000},
    ],
    ids=["conflict", "absolute", "outside", "surrogate", "nul", "long"],
)
async def test_a_project_that_cannot_be_set_up_is_no_ones_answer(judge: Judge, changes: dict[str, Any]) -> None:
    with pytest.raises(GraderFault, match=r"inside its tree|cannot be put up"):
        await judge.judge(json.dumps({"add.py": SUM}), msgspec.structs.replace(APART, **changes))


async def test_answers_streams_are_what_programs_expect(judge: Judge) -> None:
    """`/dev/stdin` and its like can be opened; what a helper of the command's prints after its end arrives."""
    test = f"""{SAY}
status=0
answer bash -c 'echo warn > /dev/stderr' 2> warned; answer ./absent 2> none || status=$?
say small "$(echo hi | answer -i cat /dev/stdin) $(cat warned) $status" "hi warn 127"
say large "$(answer sh -c '(sleep 0.2; echo late) & echo now' | tr '\\n' ' ')" "now late "
"""
    result = await judge.judge(json.dumps({"add.py": SUM}), msgspec.structs.replace(APART, test=test))
    assert kinds(result) == [K.ACCEPTED, K.ACCEPTED], result.tests


async def test_what_a_build_leaves_is_no_fault(judge: Judge) -> None:
    """Attack 93: it holds more memory than the tests may have, in /build for good and in /tmp for a moment."""
    limits = Limits(memory_bytes=100 << 20)
    report = "echo PASS small >&3; echo PASS large >&3"
    for place, kind in (("/build/a", K.MEMORY_LIMIT), ("/tmp/a", K.ACCEPTED)):
        build = f"head -c 150000000 /dev/zero > {place}"
        grader = msgspec.structs.replace(APART, build=build, test=report, limits=limits)
        result = await judge.judge(json.dumps({"add.py": SUM}), grader)
        assert kinds(result) == [kind, kind], result
    large = "char a[150 << 20] = {1};\nint main() { return a[0] - 1; }"
    grader = StdioGrader(tests=(StdioTest(stdout=""),), language="cpp", limits=Limits(memory_bytes=64 << 20))
    assert kinds(await judge.judge(large, grader)) == [K.MEMORY_LIMIT]
