"""Token ids and log-probs as bytes: little-endian int32 and float32."""

import sys
from array import array
from collections.abc import Iterable


def pack_token_ids(token_ids: Iterable[int]) -> bytes:
    """int32, little-endian. Raises OverflowError outside int32."""
    return _to_little_endian(array("i", token_ids))


def unpack_token_ids(packed: bytes) -> list[int]:
    """The inverse of `pack_token_ids`. Raises ValueError when the length is no multiple of 4."""
    return _from_little_endian("i", packed).tolist()


def pack_logprobs(logprobs: Iterable[float]) -> bytes:
    """float32, little-endian, nats."""
    return _to_little_endian(array("f", logprobs))


def unpack_logprobs(packed: bytes) -> list[float]:
    """The inverse of `pack_logprobs`."""
    return _from_little_endian("f", packed).tolist()


def _to_little_endian(values: "array[int] | array[float]") -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _from_little_endian(typecode: str, packed: bytes) -> "array[int] | array[float]":
    values: array[int] | array[float] = array(typecode)
    values.frombytes(packed)
    if sys.byteorder == "big":
        values.byteswap()
    return values
