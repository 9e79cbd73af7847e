"""Token ids and log-probs as bytes: little-endian int32 and float32."""

import struct
from collections.abc import Sequence


def pack_token_ids(token_ids: Sequence[int]) -> bytes:
    """int32, little-endian. Raises struct.error outside int32."""
    return struct.pack(f"<{len(token_ids)}i", *token_ids)


def unpack_token_ids(packed: bytes) -> list[int]:
    """The inverse of `pack_token_ids`. Raises struct.error when the length is no multiple of 4."""
    return list(struct.unpack(f"<{len(packed) // 4}i", packed))


def pack_logprobs(logprobs: Sequence[float]) -> bytes:
    """float32, little-endian, nats."""
    return struct.pack(f"<{len(logprobs)}f", *logprobs)


def unpack_logprobs(packed: bytes) -> list[float]:
    """The inverse of `pack_logprobs`."""
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))
