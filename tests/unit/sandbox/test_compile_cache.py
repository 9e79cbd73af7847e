"""The compile cache: the right entry or none, and bounded."""

import os
from pathlib import Path

from sandbox.jail.compile_cache import MAX_ENTRY_BYTES, CompileCache
from sandbox.languages.languages import LANGUAGES
from sandbox.languages.toolchains import Toolchain

C = Toolchain(LANGUAGES["c"])
CPP = Toolchain(LANGUAGES["cpp"])


def test_what_was_put_is_there_for_another_service(tmp_path: Path) -> None:
    CompileCache(tmp_path / "new").put("key", b"built")
    assert CompileCache(tmp_path / "new").get("key") == b"built"
    assert CompileCache(tmp_path / "new").get("other") is None


def test_everything_that_goes_in_makes_the_key(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    keys = {
        cache.key(C, ("gcc", "-O2"), b"p"),
        cache.key(CPP, ("gcc", "-O2"), b"p"),
        cache.key(C, ("gcc", "-O1"), b"p"),
        cache.key(C, ("gcc",), b"-O2\0p"),
        cache.key(C, ("gcc", "-O2"), b"q"),
    }
    assert len(keys) == 5
    tool = tmp_path / "gcc"
    tool.write_text("1")
    before = cache.key(Toolchain(LANGUAGES["c"], str(tool)), ("gcc",), b"p")
    tool.write_text("another compiler")
    assert cache.key(Toolchain(LANGUAGES["c"], str(tool)), ("gcc",), b"p") != before


def test_a_damaged_entry_is_a_missing_one(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    cache.put("key", b"built")
    (tmp_path / "key").write_bytes((tmp_path / "key").read_bytes()[:-1] + b"!")
    assert cache.get("key") is None


def test_the_oldest_entries_go_first(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, max_total_bytes=3500)
    for number in range(6):
        cache.put(str(number), bytes(1000))
        os.utime(tmp_path / str(number), (number, number))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 4600
    assert cache.get("0") is None
    assert cache.get("5") == bytes(1000)


def test_large_entries_and_folders_that_cannot_be_written_keep_nothing(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "file" / "folder")
    (tmp_path / "file").write_text("")
    cache.put("key", b"built")
    assert cache.get("key") is None
    large = CompileCache(tmp_path / "large")
    large.put("key", bytes(MAX_ENTRY_BYTES + 1))
    assert large.get("key") is None
