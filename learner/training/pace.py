"""Micro-batches that take a few seconds: what a stop waits for, and what activations take memory for."""

import time
from collections.abc import Generator
from contextlib import contextmanager

MICRO_BATCH_SECONDS = 4.0
"""Aimed at, forth and back. Shorter ones gain little: each adds a gradient of the model's size to the sum."""
LEAST_TOKENS = 256
"""Never aimed below: products of smaller matrices are slow, and a prompt is read again for each row."""


class Pace:
    """How many padded tokens a micro-batch may have: few at first, then what the last ones' speed allows."""

    def __init__(self, most_tokens: int) -> None:
        """`most_tokens`: the bound of memory, whatever the speed."""
        self._most_tokens = most_tokens
        self._tokens_per_second: float | None = None
        self.longest_seconds = 0.0
        """Of a micro-batch since this was last set to 0."""

    @property
    def tokens(self) -> int:
        if self._tokens_per_second is None:
            return min(LEAST_TOKENS, self._most_tokens)
        return min(max(LEAST_TOKENS, int(self._tokens_per_second * MICRO_BATCH_SECONDS)), self._most_tokens)

    @contextmanager
    def timed(self, tokens: int) -> Generator[None]:
        """Measure the body, a micro-batch of so many padded tokens."""
        begun = time.monotonic()
        yield
        seconds = max(time.monotonic() - begun, 1e-6)
        self.longest_seconds = max(self.longest_seconds, seconds)
        before, now = self._tokens_per_second, tokens / seconds
        # the first one also allocates; later ones vary with what else the machine does
        self._tokens_per_second = now if before is None else (before + now) / 2
