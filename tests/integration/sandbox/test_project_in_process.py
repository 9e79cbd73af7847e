"""The `project` grader where test tool and answer share a process. Attacks 81 to 84 of `sandbox/ATTACKS.md`."""

import json

import pytest

from sandbox import Judge
from schemas import NamedTest, ProjectGrader, VerdictKind
from tests.integration.sandbox.programs import kinds

pytestmark = pytest.mark.asyncio(loop_scope="module")
K = VerdictKind


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


async def test_a_repositorys_pytest_in_process(judge: Judge) -> None:
    """The word is read when pytest starts, and each test reported as it ends."""
    conftest = """
word = open(0).readline().strip()
def pytest_runtest_logreport(report):
    if report.when == "call":
        with open(3, "w", closefd=False) as out:
            print("PASS" if report.passed else "FAIL", word, report.nodeid, file=out)
"""
    grader = ProjectGrader(
        files={"calc.py": ""},
        target="calc.py",
        test_files={"conftest.py": conftest, "test_it.py": "import calc\n\ndef test_f():\n    assert calc.f(1) == 2\n"},
        test="python3 -m pytest -q -s -p no:cacheprovider",
        tests=(NamedTest(id="test_it.py::test_f"),),
        in_process=True,
    )
    for value, kind in ((2, K.ACCEPTED), (3, K.WRONG_ANSWER)):
        result = await judge.judge(f"def f(x):\n    return {value}\n", grader)
        assert kinds(result) == [kind], result.tests
