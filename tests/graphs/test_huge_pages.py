"""Memory that appears while zoo asks for huge pages lies in them."""

from __future__ import annotations

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


@pytest.mark.skipif(
    tuple(map(int, platform.release().split(".")[:2])) < (6, 1) if sys.platform == "linux" else True,
    reason="needs a Linux that moves memory to huge pages",
)
def test_memory_that_was_written_before_the_asking_moves_to_huge_pages(monkeypatch):
    monkeypatch.setattr(huge_pages, "EVERY", 10)  # only the look at the end
    before = huge()
    with huge_pages.asked():
        new = memory()
        new.write(bytes(len(new)))
    assert huge() >= before + len(new) // 2
    assert new[:] == bytes(len(new))


def test_a_system_that_never_gives_huge_pages_is_not_asked(monkeypatch, tmp_path):
    setting = tmp_path / "enabled"
    setting.write_text("always madvise [never]\n", encoding="ascii")
    monkeypatch.setattr(huge_pages, "SETTING", setting)
    before = huge()
    with huge_pages.asked():
        new = memory()
        new.write(bytes(len(new)))
    assert huge() == before
