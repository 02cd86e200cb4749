"""Memory that appears while zoo asks for huge pages lies in them."""

from __future__ import annotations

import mmap
import sys
import time
from pathlib import Path

import pytest

from zoo.engines.onnx import huge_pages

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not SETTING.exists() or "[madvise]" not in SETTING.read_text(encoding="ascii"),
    reason="needs a Linux that gives huge pages to those who ask",
)


def huge() -> int:
    """Bytes of this process in huge pages."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("AnonHugePages"))


def memory() -> mmap.mmap:
    return mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def test_memory_that_appears_meanwhile_is_in_huge_pages():
    before = huge()
    plain = memory()
    plain.write(bytes(len(plain)))
    assert huge() == before, "the system gives huge pages without being asked"
    with huge_pages.asked():
        new = memory()
        until = time.monotonic() + 10
        while huge() < before + len(new) // 2 and time.monotonic() < until:
            new.seek(0)
            new.write(bytes(len(new)))
            new.madvise(mmap.MADV_DONTNEED)  # so that the next write, after it was asked for, takes new pages
            new.seek(0)
            new.write(bytes(len(new)))
        assert huge() >= before + len(new) // 2
