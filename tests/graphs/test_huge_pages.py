"""Memory that appears while zoo asks for huge pages lies in them."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
import time
from pathlib import Path

import pytest

from zoo.engines.onnx import huge_pages

pytestmark = pytest.mark.skipif(
    not huge_pages.SETTING.exists() or "[madvise]" not in huge_pages.SETTING.read_text(encoding="ascii"),
    reason="needs a Linux that gives huge pages to those who ask",
)


def huge(of: mmap.mmap) -> int:
    """Bytes of this memory in huge pages; those of the process change by themselves, by what other tests asked for."""
    at, found = ctypes.addressof(ctypes.c_char.from_buffer(of)), False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        first, *more = line.split()
        if "-" in first and not first.endswith(":"):
            begin, end = (int(one, 16) for one in first.split("-"))
            found = begin <= at < end
        elif found and first == "AnonHugePages:":
            return int(more[0]) << 10
    raise AssertionError("the process does not have this memory")


def memory() -> mmap.mmap:
    return mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def test_memory_that_appears_meanwhile_is_in_huge_pages():
    with huge_pages.asking():
        new = memory()
        until = time.monotonic() + 10
        while huge(new) < len(new) // 2 and time.monotonic() < until:
            new.seek(0)
            new.write(bytes(len(new)))
            new.madvise(mmap.MADV_DONTNEED)  # so that the next write, after it was asked for, takes new pages
            new.seek(0)
            new.write(bytes(len(new)))
        assert huge(new) >= len(new) // 2


@pytest.mark.skipif(
    tuple(map(int, platform.release().split(".")[:2])) < (6, 1) if sys.platform == "linux" else True,
    reason="needs a Linux that moves memory to huge pages",
)
def test_memory_that_was_written_before_the_asking_moves_to_huge_pages(monkeypatch):
    monkeypatch.setattr(huge_pages, "INTERVAL", 10)  # only the look at the end
    with huge_pages.asking():
        new = memory()
        new.write(bytes(len(new)))
    assert huge(new) >= len(new) // 2
    assert new[:] == bytes(len(new))


def test_a_system_that_never_gives_huge_pages_is_not_asked(monkeypatch, tmp_path):
    setting = tmp_path / "enabled"
    setting.write_text("always madvise [never]\n", encoding="ascii")
    monkeypatch.setattr(huge_pages, "SETTING", setting)
    with huge_pages.asking():
        new = memory()
        new.write(bytes(len(new)))
    assert huge(new) == 0
