"""A Python program prints, and ends with, what plain CPython does: its end is the interpreter's."""

# ruff: noqa: E501 - a program a line

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import Judge
from schemas import StdioGrader, StdioTest, VerdictKind

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAST_IO = """
import os, sys
from io import BytesIO, IOBase

class Fast(IOBase):
    def __init__(self):
        self.kept = BytesIO()
        self.writable = True
    def write(self, text):
        self.kept.write(text.encode())
    def flush(self):
        os.write(1, self.kept.getvalue())
        self.kept.seek(0); self.kept.truncate(0)
"""
PLAIN = "import sys\nclass Plain:\n    def __init__(self): self.parts = []\n    def write(self, text): self.parts.append(text)\n"
SINK = "import os\nclass Sink:\n    def __del__(self): os.write(1, b'gone\\n')\n"
PROGRAMS = {
    # streams replaced
    "StringIO in its place": "import io, sys\nsys.stdout = io.StringIO()\nprint('lost')\nprint('kept', file=sys.__stdout__)",
    "StringIO, put back": "import io, sys\nold, sys.stdout = sys.stdout, io.StringIO()\nprint('x')\ns, sys.stdout = sys.stdout, old\nprint(s.getvalue())",
    "an IOBase": FAST_IO + "sys.stdout = Fast()\nprint(6)",
    "an IOBase that nobody names": FAST_IO + "sys.stdout = Fast()\nprint(6)\nsys.stdout = sys.__stdout__",
    "an IOBase, kept by a global": FAST_IO + "f = Fast()\nprint(6, file=f)",
    "a plain class with flush": PLAIN
    + "    def flush(self): sys.__stdout__.write(''.join(self.parts)); self.parts.clear()\nsys.stdout = Plain()\nprint(6)",
    "a plain class without": PLAIN + "sys.stdout = Plain()\nprint(6)",
    "None": "import sys\nprint(6)\nsys.stdout = None",
    "deleted": "import sys\nprint(6)\ndel sys.stdout",
    "devnull afterwards": "import os, sys\nprint(6)\nsys.stdout = open(os.devnull, 'w')",
    "a file on the same descriptor": "import sys\nsys.stdout = open(1, 'w', closefd=False)\nprint(6)",
    "redirected": "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as s:\n    print('a')\nprint(s.getvalue() * 2)",
    # wrapped, unflushed
    "wrapped": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8', write_through=False)\nprint('é')",
    "wrapped twice": "import io, sys\nprint('a')\nsys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer.raw, 1 << 16))\nprint('b')",
    "detached": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach(), line_buffering=False)\nprint(6)",
    "reconfigured": "import sys\nsys.stdout.reconfigure(encoding='latin-1')\nprint('é')",
    "buffer": "import sys\nsys.stdout.buffer.write(b'6')",
    "buffer after text": "import sys\nprint('a', end='')\nsys.stdout.buffer.write(b'b')",
    "a file never closed": "out = open(1, 'w', closefd=False)\nout.write('6')",
    "a file within a function": "def f():\n    out = open(1, 'w', closefd=False)\n    out.write('6')\n    return out\nkeep = [f()]",
    "stderr unflushed": "import sys\nsys.stderr.write('no newline')\nprint(6)",
    # at exit
    "atexit prints": "import atexit\natexit.register(print, 6)",
    "atexit, two and in order": "import atexit\natexit.register(print, 1)\natexit.register(print, 2)\nprint(0)",
    "atexit raises": "import atexit\natexit.register(lambda: 1 / 0)\nprint(6)",
    "atexit writes a replaced stream": FAST_IO
    + "import atexit\nf = Fast()\natexit.register(f.flush)\nprint(6, file=f)",
    "atexit under an exception": "import atexit\natexit.register(print, 6)\n1 / 0",
    "atexit under sys.exit": "import atexit, sys\natexit.register(print, 6)\nsys.exit(3)",
    "__del__": SINK + "s = Sink()",
    "__del__ in a cycle": SINK + "s = Sink()\ns.me = s",
    "__del__ in a function": SINK + "def main():\n    s = Sink()\nmain()\nprint('after')",
    "__del__ of two": SINK + "a = Sink()\nb = [Sink()]",
    "__del__ raises": "class A:\n    def __del__(self): 1 / 0\na = A()\nprint(6)",
    "__del__ uses a global": "name = 'x'\nclass A:\n    def __del__(self): print(name)\na = A()",
    "a generator's finally": "def g():\n    try:\n        yield 1\n    finally:\n        print('closed')\nit = g()\nprint(next(it))",
    "weakref.finalize": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'final')",
    "a thread": "import threading\nthreading.Thread(target=lambda: print('thread')).start()",
    "a thread that waits": "import threading, time\ndef f():\n    time.sleep(0.05)\n    print('late')\nthreading.Thread(target=f).start()\nprint('main')",
    # what flush raises
    "flush raises": PLAIN + "    def flush(self): raise ValueError('no')\nsys.stdout = Plain()\nprint(6)",
    "flush raises, exit 3": PLAIN + "    def flush(self): raise OSError('no')\nsys.stdout = Plain()\nsys.exit(3)",
    "stderr's flush raises": PLAIN + "    def flush(self): raise OSError('no')\nprint(6)\nsys.stderr = Plain()",
    "closed looks odd": PLAIN
    + "    closed = property(lambda self: 1 / 0)\n    def flush(self): sys.__stdout__.write('flushed')\nsys.stdout = Plain()",
    "closed": "import sys\nprint(6)\nsys.stdout.close()",
    "descriptor closed": "import os, sys\nprint(6)\nsys.stdout.flush()\nos.close(1)",
    "descriptor closed, unflushed": "import os\nprint(6)\nos.close(1)",
    # statuses
    "os._exit loses it": "import os\nprint(6)\nos._exit(0)",
    "os._exit, flushed": "import os, sys\nprint(6)\nsys.stdout.flush()\nos._exit(4)",
    "sys.exit with words": "import sys\nprint(6)\nsys.exit('words')",
    "sys.exit(None)": "import sys\nprint(6)\nsys.exit()",
    "sys.exit(True)": "import sys\nsys.exit(True)",
    "sys.exit(256)": "import sys\nsys.exit(256)",
    "sys.exit(-1)": "import sys\nsys.exit(-1)",
    "SystemExit of a class": "class Bye(SystemExit): pass\nraise Bye(7)",
    "exit()": "print(6)\nexit()",
    "quit()": "print(6)\nquit(2)",
    "an exception": "print(6)\nraise ValueError('x')",
    "an exception in a replaced stream": FAST_IO + "sys.stdout = Fast()\nprint(6)\nraise ValueError('x')",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook')\n1 / 0",
    "excepthook raises": "import sys\ndef hook(*a): raise KeyError('h')\nsys.excepthook = hook\n1 / 0",
    "excepthook leaves": "import sys\nsys.excepthook = lambda *a: sys.exit(9)\n1 / 0",
    "KeyboardInterrupt": "print(6)\nraise KeyboardInterrupt",
    "daemon thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint(6)",
}


@pytest.mark.parametrize("ending", PROGRAMS)
async def test_the_end_of_a_program_is_cpythons(ending: str, judge: Judge, tmp_path: Path) -> None:
    file = tmp_path / "solution.py"
    file.write_text(PROGRAMS[ending] + "\n")
    plain = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-I", file], capture_output=True, check=False, timeout=20
    )
    text = plain.stdout.decode("utf-8", "replace")
    result = await judge.judge(PROGRAMS[ending] + "\n", StdioGrader(tests=(StdioTest(stdout=text),)))
    (test,) = result.tests
    signal = -plain.returncode if plain.returncode < 0 else None
    assert (test.exit_status, test.signal) == (None if signal else plain.returncode, signal), test.detail
    if plain.returncode == 0 and text.isascii():
        assert test.kind is VerdictKind.ACCEPTED, test.detail
    # byte for byte: the paths in tracebacks differ, and nothing else
    ours = str(file).encode()
    errors = plain.stderr.replace(ours, b"/tmp/work/solution.py")
    if b" object at 0x" not in errors and b"<function " not in errors:
        assert test.output_bytes == len(plain.stdout) + len(errors), errors.decode()
