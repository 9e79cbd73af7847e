"""What a process gives up before it runs judged code. Runs inside the jail; standard library only.

The jail's init keeps the capabilities of its own user namespace (it mounts a fresh `/tmp` for every
test), so every process that will run judged code drops them here, for good: uid and gid, all five
capability sets, new privileges, and by a seccomp filter every call that makes or joins namespaces,
mounts, traces, or reaches kernel objects shared between jobs.
"""

# ruff: noqa: PTH123 - every jail would load pathlib for a handful of calls

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import struct

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_SET_SECCOMP = 4, 24, 38, 47, 22
_CLONE_NEWUSER = 0x10000000
_SECCOMP_MODE_FILTER = 2
_LAST_CAPABILITY = 63
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
MNT_DETACH = 2

# Every name: (x86_64, aarch64). None: the machine has no such call.
_DENIED: "dict[str, tuple[int | None, int | None]]" = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "fanotify_init": (300, 262),
    "personality": (135, 92),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
}
_OWN_ONLY: "tuple[tuple[int, int], ...]" = ((302, 261), (203, 122), (142, 118), (144, 119), (314, 274))
"""prlimit64, sched_setaffinity, _setparam, _setscheduler, _setattr: only a process's own (argument 0 is 0)."""
_MACHINES = {
    # name: (column above, audit architecture, clone, clone3, socket, highest call number that is not another ABI)
    "x86_64": (0, 0xC000003E, 56, 435, 41, 0x3FFFFFFF),
    "aarch64": (1, 0xC00000B7, 220, 435, 198, 0xFFFFFFFF),
}
_NEW_NAMESPACES = 0x7E020000 | 0x80
_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET and AF_INET6 (the jail has no interface); no netlink, packet, vsock, bluetooth, alg."""


def seccomp_filter() -> bytes:
    """Build the BPF program as the kernel wants it (an array of sock_filter), for this machine."""
    column, audit, clone, clone3, socket, top = _MACHINES[platform.machine()]
    load, jeq, jgt, jset, ret = 0x20, 0x15, 0x25, 0x45, 0x06
    allow, kill, refuse = 0x7FFF0000, 0x80000000, 0x00050000
    number, architecture, argument0 = 0, 4, 16

    def op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("<HBBI", code, yes, no, value)

    program = [op(load, architecture), op(jeq, audit, 1, 0), op(ret, kill), op(load, number)]
    program += [op(jgt, top, 0, 1), op(ret, kill)]
    for numbers in _DENIED.values():
        value = numbers[column]
        if value is not None:
            program += [op(jeq, value, 0, 1), op(ret, refuse | errno.EPERM)]
    for pair in _OWN_ONLY:
        program += [op(jeq, pair[column], 0, 4), op(load, argument0), op(jeq, 0, 1, 0)]
        program += [op(ret, refuse | errno.EPERM), op(ret, allow)]
    # libc falls back from clone3, whose flags a filter cannot see, to clone
    program += [op(jeq, clone3, 0, 1), op(ret, refuse | errno.ENOSYS)]
    program += [op(jeq, clone, 0, 4), op(load, argument0), op(jset, _NEW_NAMESPACES, 0, 1)]
    program += [op(ret, refuse | errno.EPERM), op(ret, allow)]
    program += [op(jeq, socket, 1, 0), op(ret, allow), op(load, argument0)]
    program += [part for family in _FAMILIES for part in (op(jeq, family, 0, 1), op(ret, allow))]
    program += [op(ret, refuse | errno.EAFNOSUPPORT)]
    return b"".join(program)


class Confinement:
    """The steps that cannot be undone, prepared once so that a test pays only for the calls."""

    def __init__(self, *, users: bool) -> None:
        """Prepare. `users`: the jail has more than one user, as it has where the service is root."""
        self.users = users
        program = seccomp_filter()
        self._program = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(self._program))
        self._filter = ctypes.create_string_buffer(header, len(header))
        self._no_capabilities = ctypes.create_string_buffer(24)
        self._capability_header = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0), 8)

    def drop(self, uid: int, *, dumpable: bool) -> None:
        """Become `uid` without any privilege. `dumpable` is off for whoever holds a secret."""
        if self.users:
            os.setgroups([])
        else:
            _become(uid)
        for capability in range(_LAST_CAPABILITY + 1):
            if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                break  # past the last capability this kernel knows
        _check(_libc.prctl(_PR_CAP_AMBIENT, 4, 0, 0, 0), "clear ambient capabilities")
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        _check(_libc.capset(self._capability_header, self._no_capabilities), "capset")
        _check(_libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0), "set dumpable")
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
        _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, self._filter, 0, 0), "seccomp")


def _become(uid: int) -> None:
    """Appear as `uid`, in a user namespace below the jail's: for a service that is not root itself."""
    _check(_libc.unshare(_CLONE_NEWUSER), "unshare")
    _check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "set dumpable")  # or /proc/self is not ours to write
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} 0 1"), ("gid_map", f"{uid} 0 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def hide_self() -> None:
    """Let nobody of another privilege read this process's memory, descriptors or environment."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "set dumpable")


def set_limits(cpu_seconds: int, tasks: int, files: int, stack_bytes: int) -> None:
    """Set the per-process limits that back up those of the control group. `tasks` 0: the group has that one."""
    if tasks:
        resource.setrlimit(resource.RLIMIT_NPROC, (tasks, tasks))
    # programs raise this one themselves: memory is what bounds it
    most = resource.getrlimit(resource.RLIMIT_STACK)[1]
    wanted = stack_bytes if most == resource.RLIM_INFINITY else min(stack_bytes, most)
    resource.setrlimit(resource.RLIMIT_STACK, (wanted, most))
    for limit, value in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_NOFILE, files),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 16),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_RTPRIO, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(limit, (value, value))


def reset_signals() -> None:
    """Give an exec'd program the dispositions a shell would."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def first_to_die() -> None:
    """Offer this process to the kernel's out-of-memory killer before the init."""
    with contextlib.suppress(FileNotFoundError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def mount_tmpfs(path: str, size_bytes: int, inodes: int, mode: int, owner: int = 0) -> None:
    """Mount a fresh file system in memory."""
    options = f"size={size_bytes},nr_inodes={inodes},mode={mode:o},uid={owner},gid={owner}"
    flags = MS_NOSUID | MS_NODEV
    _check(_libc.mount(b"tmpfs", path.encode(), b"tmpfs", flags, options.encode()), f"mount {path}")


def remount(path: str, *, read_only: bool) -> None:
    """Make the mount at `path` read-only or writable."""
    flags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | (MS_RDONLY if read_only else 0)
    _check(_libc.mount(None, path.encode(), None, flags, None), f"remount {path}")


def unmount(path: str) -> None:
    """Take the mount at `path` away (and with it, as nothing holds it, all that it held)."""
    _check(_libc.umount2(path.encode(), MNT_DETACH), f"unmount {path}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
