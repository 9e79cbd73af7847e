"""Tests in the answer's own process, as plain Python runs them: for tasks that ask for it (`in_process`), and to see
whether a failure is of the arrangement with two processes.

An answer can forge everything here (`ATTACKS.md`): what this says is a pass only where the task has chosen so.
"""

# ruff: noqa: PTH103, PTH118, PTH120, PTH123 - every jail would load pathlib for a handful of calls

import json
import os
import tempfile
from typing import Any

from . import programs, suites, tester
from .link import Json


def run_check_alone(descriptors: "list[int]", process: Json) -> None:
    """Run a test program in the answer's module."""
    source, program = programs.read_all(descriptors[0]), programs.read_all(descriptors[1])
    claims = programs.ResultPipe(descriptors[2], process["nonce"])
    code = programs.compiled(source, claims)
    programs.be_script(source)
    entry_point, check_function = json.loads(process["entry_point"])
    try:
        space = programs.load(code, process).__dict__
        tests = compile(program, tester.TEST_FILE, "exec", dont_inherit=True)
        exec(tests, space)
        check: Any = space.get(check_function)
        if check is not None:
            check(space[entry_point])
    except AssertionError as error:
        claims.text("failed", tester.failure(error, program))
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        claims.text("raised", programs.described(error))
    else:
        claims.write("passed", b"null")
    programs.leave()


def run_suite_alone(descriptors: "list[int]", process: Json) -> None:
    """Write the answer and the files side by side, and run every test."""
    source, files = programs.read_all(descriptors[0]), json.loads(programs.read_all(descriptors[1]))
    claims = programs.ResultPipe(descriptors[2], process["nonce"])
    programs.compiled(source, claims)
    module, test_files, with_pytest = json.loads(process["entry_point"])
    programs.add_site_builtins()
    folder = tempfile.mkdtemp(prefix="tests-", dir="/tmp")
    suites.write_files(folder, files)
    path = os.path.join(folder, *module.split(".")) + ".py"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(source)

    def report(test: str, status: str, message: str) -> None:
        words = message.replace(f"{folder}/", "")[: programs.MAX_MESSAGE]
        claims.write("test", json.dumps([test, status, words]).encode())

    suites.run_files(folder, test_files, report, with_pytest=with_pytest)
    claims.write("ended", b"null")
    programs.leave()
