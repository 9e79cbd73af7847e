"""What one pipe of a judged process brings, for the init to hand on as it is."""

import mmap
import os

READ_BYTES = 1 << 16


class Stream:
    """What one pipe of a process has brought so far: kept up to a cap, counted to one beyond.

    Kept in pages of its own that go back to the kernel afterwards: a later test is a fork of this process,
    and would find in its heap what an earlier one wrote.
    """

    def __init__(self, descriptor: int, cap: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.cap = cap
        self.size = 0
        self.truncated = False
        self.open = True
        self.pages = mmap.mmap(-1, cap + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def read(self) -> bool:
        """Read what is there; False when it would have to wait. At the end it closes itself."""
        with memoryview(self.pages) as whole, whole[self.size : self.size + READ_BYTES] as room:
            try:
                count = os.readv(self.descriptor, [room])
            except BlockingIOError:
                return False
        if not count:
            self.close()
            return False
        self.size += count
        if self.size > self.cap:
            self.size, self.truncated = self.cap, True
        return True

    def drain(self) -> None:
        """Read the rest, now that every writer is dead."""
        while self.open and not self.truncated and self.read():
            pass
        if self.open:
            self.close()

    def close(self) -> None:
        """Stop reading."""
        os.close(self.descriptor)
        self.open = False

    def text(self) -> str:
        """The whole of it; only for what this package's own code wrote."""
        return self.pages[: self.size].decode("utf-8", "replace")
