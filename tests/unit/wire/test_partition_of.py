"""Where a key goes must be the same in every client: a group meets in one partition."""

import pytest
from aiokafka.partitioner import DefaultPartitioner, murmur2

from wire.kafka.clients import partition_of


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        # from Kafka's own UtilsTest.testMurmur2 (Java ints, here as signed)
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_hash_is_kafkas(key: str, expected: int) -> None:
    unsigned = murmur2(key.encode())
    assert (unsigned - (1 << 32) if unsigned >= 1 << 31 else unsigned) == expected
    assert partition_of(key, 7) == (expected & 0x7FFFFFFF) % 7


def test_equals_the_default_partitioner_of_aiokafka() -> None:
    partitioner = DefaultPartitioner()
    for number in range(300):
        key = f"group-{number}"
        for partitions in (1, 4, 16):
            places = list(range(partitions))
            assert partition_of(key, partitions) == partitioner(key.encode(), places, places)


def test_keys_beyond_ascii_are_utf8() -> None:
    places = list(range(16))
    assert partition_of("größe-ß", 16) == DefaultPartitioner()("größe-ß".encode(), places, places)
