"""DeepSpeed's first-start build, one process at a time.

torch guards the build of an operator with a file that says nothing of its owner: when the builder is killed, the
next process waits for it for ever. Here a lock that the kernel drops with its holder stands in front, in a
directory that only this Python environment builds in: the operator's sources lie in the environment, and two that
shared a directory would each build again after the other.
"""

import fcntl
import hashlib
import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

logger = logging.getLogger(__name__)

DIRECTORY_VARIABLE = "TORCH_EXTENSIONS_DIR"


@contextmanager
def exclusive_build() -> Generator[None]:
    """Hold the right to build; what a killed builder left is cleared first.

    A directory that the user chose by the environment is used as it is: others may build there too.
    """
    if DIRECTORY_VARIABLE in os.environ:
        yield
        return
    environment = hashlib.sha256(sys.prefix.encode()).hexdigest()[:16]
    directory = Path.home() / ".cache" / "headwater" / "torch-extensions" / environment
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "headwater.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in directory.rglob("lock"):
            left.unlink()
        if not any(directory.rglob("*.so")):
            logger.info("building DeepSpeed's operator, once for this environment: about a minute on two quiet cores")
        os.environ[DIRECTORY_VARIABLE] = str(directory)
        try:
            yield
        finally:
            del os.environ[DIRECTORY_VARIABLE]
