"""Memory of packed weights in pages of 2 MB, on Linux.

A token reads all of them, a gigabyte for a Llama of a billion parameters, and finding its pages of 4 KB took a seventh
of its time (Sapphire Rapids, virtual).  Where the system gives huge pages only to those who ask ("madvise", the usual
setting), ONNX Runtime does not ask.  So zoo asks for the memory that appears while a session packs.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ...files.pages import calling_meanwhile

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
SIZE = 2 << 20  # bytes of a huge page
MIN_REGION_BYTES = 16 << 20  # bytes of a region; a thread's stack has fewer
INTERVAL = 0.001  # seconds between looks
COLLAPSE = 25  # MADV_COLLAPSE, since Linux 6.1: what has been written moves to huge pages

Region = tuple[int, int]  # its first byte, and the one after its last


def asking() -> AbstractContextManager[None]:
    """A context in which new memory of this process gets huge pages, also what was written before they were asked for.

    Moving all of it afterwards would take a second, in which prompts wait.  Beside the packing, which keeps one
    processor busy, a free second one does it meanwhile.
    """
    if sys.platform != "linux" or not SETTING.is_file() or "[never]" in SETTING.read_text(encoding="ascii"):
        return nullcontext()
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    before = set(_regions())
    known = set(before)

    def ask() -> None:
        for begin, end in set(_regions()) - before:
            if (begin, end) not in known:
                advise(begin, end - begin, mmap.MADV_HUGEPAGE)
                known.add((begin, end))
            advise(begin, end - begin, COLLAPSE)

    return calling_meanwhile(ask, INTERVAL)


def _regions() -> Iterator[Region]:
    """The whole huge pages of each large region of the process's own memory, that of no file."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            lines = maps.readlines()
    except OSError:
        return
    for line in lines:
        place, rights, _, _, inode, *name = line.split(maxsplit=5)
        if rights == "rw-p" and inode == "0" and (not name or name[0].strip() == "[heap]"):
            begin, end = (int(one, 16) for one in place.split("-"))
            begin, end = -(-begin // SIZE) * SIZE, end // SIZE * SIZE
            if end - begin >= MIN_REGION_BYTES:
                yield begin, end
