"""What a forked interpreter can be, by the kind of process."""

from collections.abc import Callable

import answer
import harness
import programs
import suites
import tester
import tree
from link import Json

RUNNERS: "dict[str, Callable[[list[int], Json], None]]" = {
    "main": programs.run_main,
    "call": programs.run_call,
    "answer": answer.run_answer,
    "check": tester.run_check,
    "suite": suites.run_suite,
    "harness": harness.run_harness,
    "starter": harness.run_starter,
    "unpack": tree.run_unpack,
    "pack": tree.run_pack,
    "unpack built": tree.run_unpack_built,
}
