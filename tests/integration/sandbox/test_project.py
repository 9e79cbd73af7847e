"""The `project` grader: honest answers, and attacks 81 to 84 of `sandbox/ATTACKS.md`."""

import json
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from sandbox import Judge, Judgement, score
from schemas import Limits, NamedTest, ProjectGrader, VerdictKind

pytestmark = pytest.mark.asyncio(loop_scope="module")
K = VerdictKind


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judge() -> AsyncIterator[Judge]:
    """One Judge with one place: jobs follow one another in the same jail."""
    async with Judge(1) as judge:
        yield judge


def kinds(result: Judgement) -> list[VerdictKind]:
    return [test.kind for test in result.tests] or [result.kind]


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


IN_PROCESS = """
word = input()
import solution
print("PASS" if solution.f(1) == 2 else "FAIL", word, "a", file=open(3, "w"))
"""


def project(**changes: object) -> ProjectGrader:
    """A project whose tests load the answer into their own process."""
    whole: dict[str, object] = {
        "files": {"solution.py": "", "lib/util.py": "X = 1\n"},
        "test_files": {"test_it.py": IN_PROCESS},
        "test": "python3 test_it.py",
        "tests": (NamedTest(id="a"),),
        "in_process": True,
    }
    return ProjectGrader(**(whole | changes))  # pyright: ignore[reportArgumentType]


async def test_a_project_keeps_an_answer_inside_its_tree(judge: Judge) -> None:
    """Attack 81: paths out of the tree, files in place of the tests, files that steer test tools."""
    good = "def f(x):\n    return 3\n"
    for path in ("../x.py", "/tmp/x.py", "a/../../x", "", ".", "a//b", "conftest.py", "deep/conftest.py", "pytest.ini"):
        answer = json.dumps({"solution.py": good, path: "print('PASS a')\n"})
        assert (await judge.judge(answer, project())).kind is K.COMPILE_ERROR, path
    for path in ("test_it.py", "test_it.py/x"):
        answer = json.dumps({"solution.py": good, path: "print('PASS a')\n"})
        assert kinds(await judge.judge(answer, project())) != [K.ACCEPTED], path
    link = "ln -sf /dev/null test_it.py; ln -s . loop; true"
    answer = json.dumps({"solution.py": good, "build.sh": link})
    assert kinds(await judge.judge(answer, project(build="sh build.sh"))) == [K.WRONG_ANSWER]
    for hostile in (
        '{"a":' * 50_000,
        "--- a/solution.py\n+++ b/solution.py\n@@ -1 +1,99999999 @@\n+x\n",
        "diff --git ",
    ):
        assert (await judge.judge(hostile, project())).kind is K.COMPILE_ERROR


async def test_a_project_answer_steers_no_test_tool(judge: Judge) -> None:
    """Attack 83: settings files of test tools, brought along or made by the build."""
    for path in ("pyproject.toml", ".pytest.ini", "lib/x.pth"):
        answer = json.dumps({"solution.py": "def f(x):\n    return 3\n", path: "\n"})
        assert (await judge.judge(answer, project())).kind is K.COMPILE_ERROR, path
    answer = json.dumps(
        {"solution.py": "def f(x):\n    return 3\n", "build.sh": "echo 'raise SystemExit' > conftest.py"}
    )
    result = await judge.judge(
        answer, project(build="sh build.sh", test="read word; test ! -e conftest.py && echo PASS $word a >&3")
    )
    assert kinds(result) in ([K.COMPILE_ERROR], [K.ACCEPTED])


async def test_a_build_steers_no_test_tool(judge: Judge) -> None:
    """Attack 83: whatever it makes under such a name, wherever, is gone; the task's own files are as they were."""
    build = """
mkdir -p closed/.cargo test_it __pycache__ && echo bad > pytest.ini && echo bad > closed/conftest.py && chmod 111 closed
echo bad > .cargo && ln -s /build/x.pth y.pth && echo bad > x.pth && mkdir setup.cfg && echo bad > test_it/__init__.py
echo bad > __pycache__/test_it.cpython-312.pyc && echo bad > test_it.abi3.so && echo bad > lib/conftest.py
"""
    look = (
        "read word; "
        "test \"$(find . -type f -o -type l | sort | tr '\\n' ' ')\" = './build.sh ./lib/conftest.py ./lib/util.py "
        './solution.py ./test_it.py \' && test "$(cat lib/conftest.py)" = own && echo PASS $word a >&3'
    )
    answer = json.dumps({"solution.py": "def f(x):\n    return 3\n", "build.sh": build})
    files = {"solution.py": "", "lib/util.py": "X = 1\n", "lib/conftest.py": "own"}
    answer = json.dumps(json.loads(answer) | {"lib/conftest.py": "changed"})
    result = await judge.judge(answer, project(files=files, build="sh build.sh", test=look))
    assert kinds(result) == [K.ACCEPTED], (result.compile_log, result.tests)


async def test_a_patch_of_a_file_with_odd_line_ends_fits(judge: Judge) -> None:
    """Attack 84, for a false -1: a form feed and U+2028 end no line."""
    base = {"solution.py": 'X = "\u2028"\n\x0cdef f(x):\n    return 3\n'}
    diff = (
        "--- a/solution.py\n+++ b/solution.py\n@@ -1,3 +1,3 @@\n"
        ' X = "\u2028"\n \x0cdef f(x):\n-    return 3\n+    return 2\n'
    )
    assert kinds(await judge.judge(diff, project(files=base))) == [K.ACCEPTED]


async def test_a_project_answer_that_leaves_early_has_passed_nothing(judge: Judge) -> None:
    """Attack 82: one line printed while the answer is loaded, and the process is gone: no test counts."""
    answer = json.dumps({"solution.py": "import os\nprint('PASS a', flush=True)\nos._exit(0)\n"})
    result = await judge.judge(answer, project(tests=(NamedTest(id="a"), NamedTest(id="b"))))
    assert kinds(result) == [K.RUNTIME_ERROR, K.RUNTIME_ERROR]
    assert "not reported" in result.tests[0].detail
    assert "not reported" in result.tests[1].detail


async def test_a_project_that_shares_its_process_is_not_passed_by_printing(judge: Judge) -> None:
    """Attack 82, in one process: the word can be read once, and without it no line counts."""
    printing = """
import os, sys
def look():
    for end in (0, f"/proc/self/fd/0", f"/proc/{os.getppid()}/fd/0", f"/proc/{os.getppid()}/environ"):
        try:
            end = os.open(end, os.O_RDONLY | os.O_NONBLOCK) if end else end
            yield os.read(end, 100).split()[0].decode()
        except (OSError, IndexError):
            pass
for word in ["", *look(), *os.environ.values(), *sys.argv]:
    os.write(3, f"PASS {word} a\\n".replace("  ", " ").encode())
os._exit(0)
"""
    result = await judge.judge(json.dumps({"solution.py": printing}), project())
    assert kinds(result) == [K.RUNTIME_ERROR], result.tests
    for answer, kind in ((2, K.ACCEPTED), (3, K.WRONG_ANSWER)):
        honest = json.dumps({"solution.py": f"def f(x):\n    return {answer}\n"})
        assert kinds(await judge.judge(honest, project())) == [kind]


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
