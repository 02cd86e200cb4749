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

from ...weights.mapped import meanwhile

SIZE = 2 << 20  # bytes of a huge page
LEAST = 16 << 20  # bytes of a region; a thread's stack has fewer
EVERY = 0.001  # seconds between looks; memory that is written before keeps its small pages

Region = tuple[int, int]  # its first byte, and the one after its last


def asked() -> AbstractContextManager[None]:
    """Meanwhile ask for huge pages for new memory of this process.

    To move what was written before too (MADV_COLLAPSE) takes a second or two, in which prompts wait.
    """
    if sys.platform != "linux":
        return nullcontext()
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    known = set(_regions())

    def ask() -> None:
        for begin, end in set(_regions()) - known:
            advise(begin, end - begin, mmap.MADV_HUGEPAGE)
            known.add((begin, end))

    return meanwhile(ask, EVERY)


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
            if end - begin >= LEAST:
                yield begin, end
