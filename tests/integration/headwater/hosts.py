"""Machines for a test: network namespaces of this one, joined by a wire, each without the others' directories.

And an S3 server, versitygw: the one on PATH, or built once by this machine's Go.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from wire.broker.jars import user_cache

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
_TOOLS = ("ip", "nsenter", "unshare", "mount")
_CONNECT = """
import socket, sys, time
while True:
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()
        break
    except OSError:
        time.sleep(0.1)
"""


@dataclass
class Host:
    """One machine: an address, a directory of its own, and what it runs."""

    namespace: str
    address: str
    directory: Path
    hidden: Sequence[Path]
    """Directories of other machines."""
    environment: dict[str, str] = field(default_factory=dict[str, str])
    running: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """What it prints is in NAME.out."""
        with self.output(name).open("wb") as output:
            process = subprocess.Popen(
                self._inside(*command),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | self.environment,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def headwater(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        return self.start(name, sys.executable, "-P", "-m", "headwater", *arguments)

    def run(self, *command: str) -> str:
        """What it printed. Raises CalledProcessError, TimeoutExpired."""
        environment = os.environ | self.environment
        return subprocess.run(
            self._inside(*command), check=True, capture_output=True, text=True, timeout=60, env=environment
        ).stdout

    def reaches(self, address: str, port: int) -> None:
        """Wait until somebody listens there."""
        self.run(sys.executable, "-c", _CONNECT, address, str(port))

    def output(self, name: str) -> Path:
        return self.directory / f"{name}.out"

    def until(self, name: str, words: str, seconds: float = 240.0) -> None:
        """Until it has printed these words."""
        deadline = time.monotonic() + seconds
        while words not in (said := self.output(name).read_text(errors="replace")):
            assert time.monotonic() < deadline, f"no {words!r} in:\n{said}"
            time.sleep(0.1)

    def _inside(self, *command: str) -> list[str]:
        hide = "".join(f"mount -t tmpfs none {shlex.quote(str(path))} && " for path in self.hidden)
        enter = ["nsenter", f"--net=/run/netns/{self.namespace}", "unshare", "--mount"]
        return [*enter, "sh", "-c", f'{hide}exec "$@"', "sh", *command]


@contextmanager
def hosts(directory: Path, names: Sequence[str]) -> Iterator[list[Host]]:
    """Machines that reach each other and nothing else. Skips where this machine cannot have any."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"network namespaces need root and {', '.join(_TOOLS)}; missing: {missing or 'root'}")
    mark = f"hw{os.getpid()}"
    directories = [directory / name for name in names]
    for path in directories:
        path.mkdir(parents=True)
    made = [
        Host(f"{mark}-{number}", f"10.77.0.{number + 1}", path, [other for other in directories if other != path])
        for number, path in enumerate(directories)
    ]
    bridge = f"{mark}-wire"
    try:
        if subprocess.run(["ip", "netns", "add", bridge], capture_output=True, check=False).returncode:
            pytest.skip("this machine makes no network namespaces (ip netns add)")
        _ip("-n", bridge, "link", "add", "wire", "type", "bridge")
        _ip("-n", bridge, "link", "set", "wire", "up")
        for number, host in enumerate(made):
            _ip("netns", "add", host.namespace)
            _ip("-n", bridge, "link", "add", f"p{number}", "type", "veth", "peer", "eth0", "netns", host.namespace)
            _ip("-n", bridge, "link", "set", f"p{number}", "master", "wire", "up")
            _ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
            _ip("-n", host.namespace, "link", "set", "eth0", "up")
            _ip("-n", host.namespace, "link", "set", "lo", "up")
        yield made
    finally:
        for host in reversed(made):
            for process in reversed(host.running):
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        for namespace in (*(host.namespace for host in made), bridge):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)


def s3(host: Host, port: int, bucket: str) -> dict[str, str]:
    """Start it there, with an empty bucket; returns the environment of its clients."""
    keys = {"AWS_ACCESS_KEY_ID": "headwater", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}
    root = host.directory / "s3"
    root.mkdir()
    access = ("--access", keys["AWS_ACCESS_KEY_ID"], "--secret", keys["AWS_SECRET_ACCESS_KEY"])
    host.start("s3", _versitygw(), *access, "--port", f"{host.address}:{port}", "posix", str(root))
    host.reaches(host.address, port)
    environment = {**keys, "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://{host.address}:{port}"}
    host.environment |= environment
    host.run(sys.executable, "-c", f"import s3fs; s3fs.S3FileSystem().mkdir({bucket!r})")
    return environment


def _versitygw() -> str:
    """The program. Skips where it is not installed and cannot be built."""
    directory = user_cache() / "tools"
    found = shutil.which("versitygw") or shutil.which("versitygw", path=str(directory))
    if found:
        return found
    go = shutil.which("go")
    if go is None:
        pytest.skip("no versitygw on PATH, and no Go to build it with")
    built = subprocess.run(
        [go, "install", VERSITYGW],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"GOBIN": str(directory), "CGO_ENABLED": "0"},
    )
    if built.returncode:
        pytest.skip(f"versitygw cannot be built here: {built.stderr.strip().splitlines()[-1]}")
    return str(directory / "versitygw")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
