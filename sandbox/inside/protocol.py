"""What the service and the inside of a jail have agreed on: users, paths, kinds of processes, names of claims.

Both sides import this file and nothing of each other's. Constants only.
"""

JUDGED_UID, TESTER_UID = 1000, 1001
"""Users in the jail: the answer's, and that of processes of ours which must be out of its reach."""

TEST, WORK, BUILD, TESTS = "/tmp", "/tmp/work", "/build", "/tests"
"""New for every run; where programs start; where they are built; the test command's own (`project`)."""
CODE, PACKAGE = "/headwater", "_headwater"
"""Where `inside/` lies, and what it is called there: programs and tests bring modules of any other name."""
PYTEST, SITE = "/headwater-packages", "/headwater-site"
"""pytest, for testers; the packages that a task names."""
LAUNCHER = "/headwater-launch"
WHOLE_PROC = "/headwater-proc"
SOLUTION = f"{WORK}/solution.py"
"""Where a Python answer is written."""

EXEC = "exec"
"""A process that becomes another program; every other kind runs a function of a module here, in a fork."""
RUNNERS = {
    "main": "programs.run_main",
    "call": "calls.run_call",
    "reward": "rewards.run_reward",
    "answer": "answer.run_answer",
    "check": "tester.run_check",
    "suite": "suites.run_suite",
    "check alone": "alone.run_check_alone",
    "suite alone": "alone.run_suite_alone",
    "harness": "harness.run_harness",
    "starter": "harness.run_starter",
    "unpack": "tree.run_unpack",
    "pack": "built.run_pack",
    "unpack built": "built.run_unpack_built",
}

CLAIMS = frozenset(
    {"compiled", "syntax", "value", "argument", "unprintable", "raised", "passed", "failed", "broken", "test", "ended"}
)
"""What a line on the result pipe may say. `compiled` or `syntax` comes first, and `test` more than once."""
UNUSABLE = "UNUSABLE "
"""Begins a project's report where its test command could not even be started."""
