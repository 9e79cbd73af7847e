"""As on the judges that tasks come from: class names, standards, deep recursion."""

# ruff: noqa: E501 - a program a line

import pytest

from sandbox import Judge
from sandbox.errors import TaskFault
from sandbox.jail.host import HostReport
from schemas import FunctionGrader, FunctionTest, StdioGrader, StdioTest, VerdictKind

pytestmark = pytest.mark.asyncio(loop_scope="module")

READS = "java.util.Scanner in = new java.util.Scanner(System.in); System.out.println(in.nextInt() + 1);"
DEEP_C = """
#include <stdio.h>
static int walk(int n) { volatile char pad[64]; pad[0] = 1; return n ? pad[0] + walk(n - 1) : 0; }
int main(void) { int n; if (scanf("%d", &n) != 1) return 1; printf("%d\\n", walk(n)); }
"""
DEEP_JAVA = """
public class Deep {
    static int walk(int n) { return n == 0 ? 0 : 1 + walk(n - 1); }
    public static void main(String[] args) { System.out.println(walk(new java.util.Scanner(System.in).nextInt())); }
}
"""
DEEP_JS = "const walk = n => n === 0 ? 0 : 1 + walk(n - 1);\nconsole.log(walk(+require('fs').readFileSync(0, 'utf8')));"
DEEP_PY = "import sys\nsys.setrecursionlimit(1 << 20)\ndef walk(n):\n    return 0 if n == 0 else 1 + walk(n - 1)\n"
CACHED = "from functools import cache\n" + DEEP_PY.replace("def ", "@cache\ndef ")
SORTED = "class N:\n    def __init__(s, n): s.n = n\n    def __lt__(s, o): return bool(sorted([N(s.n - 1), N(0)])) if s.n else False\n"


@pytest.mark.parametrize(
    ("language", "program", "stdin", "stdout"),
    [
        ("java", "public class Solution { public static void main(String[] a) { %s } }", "1", "2"),
        ("java", "class Solver { static int x; public static void main(String... a) { %s } }", "1", "2"),
        ("java", "package a.b; public class Main { public static void main(String[] a) { %s } }", "1", "2"),
        ("java", "package a;\nclass X {}\nclass Y { public static void main(String[] a) { %s } }", "1", "2"),
        (
            "cpp",
            "#include <concepts>\n#include <iostream>\ntemplate <std::integral T> T f(T x) { return x; }\nint main() { std::cout << f(2); }",
            "",
            "2",
        ),
        (
            "cpp",
            "#include <iostream>\n#include <map>\nint main() { std::map<int,int> m{{1,2}}; std::cout << m.contains(1); }",
            "",
            "1",
        ),
        (
            "cpp",
            "#include <iostream>\n#include <span>\nint main() { int a[3]; std::cout << std::span(a).size() << __int128(1) ; }".replace(
                " << __int128(1)", ""
            ),
            "",
            "3",
        ),
        ("c", DEEP_C, "1000000", "1000000"),
        ("java", DEEP_JAVA, "100000", "100000"),
        ("javascript", DEEP_JS, "100000", "100000"),
        ("python", DEEP_PY + "print(walk(int(input())))", "200000", "200000"),
        ("python", CACHED + "print(walk(int(input())))", "100000", "100000"),
        ("python", "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (1 << 29, -1))\nprint(1)", "", "1"),
        (
            "python",
            "import threading\nthreading.stack_size(1 << 26)\nt = threading.Thread(target=print, args=(1,))\nt.start()",
            "",
            "1",
        ),
    ],
)
async def test_right_programs_are_right(
    language: str, program: str, stdin: str, stdout: str, judge: Judge, host: HostReport
) -> None:
    if host.languages[language] is not None:
        pytest.skip(f"{language} is not on this machine")
    grader = StdioGrader(tests=(StdioTest(stdin=stdin, stdout=stdout),), language=language)
    result = await judge.judge(program.replace("%s", READS), grader)
    assert result.kind is VerdictKind.ACCEPTED, (result.compile_log, result.tests)


async def test_a_standard_is_the_tasks_to_choose(judge: Judge) -> None:
    program = "#include <iostream>\n#include <set>\nint main() { std::set<int> s{1}; std::cout << s.contains(1); }"
    kinds = [
        (
            await judge.judge(program, StdioGrader(tests=(StdioTest(stdout="1"),), language="cpp", standard=standard))
        ).kind
        for standard in (None, "gnu++20", "gnu++17", "c++98")
    ]
    assert kinds == [VerdictKind.ACCEPTED] * 2 + [VerdictKind.COMPILE_ERROR] * 2
    with pytest.raises(TaskFault, match="no standards"):
        await judge.judge("print(1)", StdioGrader(tests=(StdioTest(stdout="1"),), standard="gnu++20"))


@pytest.mark.parametrize(
    "program",
    [
        DEEP_PY + "def f():\n    return walk(10 ** 9)",
        CACHED + "def f():\n    return walk(10 ** 9)",
        "def f():\n    x = []\n    for _ in range(1 << 20): x = [x]\n    return len(repr(x))",
        "def f():\n    import json\n    return len(json.loads('[' * (1 << 20) + ']' * (1 << 20)))",
        SORTED + "def f():\n    return N(10 ** 6) < N(0)",
    ],
)
async def test_recursion_without_an_end_is_the_programs_own(program: str, judge: Judge) -> None:
    result = await judge.judge(program, FunctionGrader(entry_point="f", tests=(FunctionTest.of([], 1),)))
    assert result.kind not in (VerdictKind.ACCEPTED, VerdictKind.COMPILE_ERROR)
    again = await judge.judge(
        "def f():\n    return 1", FunctionGrader(entry_point="f", tests=(FunctionTest.of([], 1),))
    )
    assert again.kind is VerdictKind.ACCEPTED
