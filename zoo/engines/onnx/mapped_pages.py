"""Memory of a graph's mapped weights, given back while ONNX Runtime packs them: else they are in memory twice."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SMALL = 64 << 20  # bytes of weights that may be in memory twice
EVERY = 0.02  # seconds
DONTNEED = 4  # MADV_DONTNEED of Linux: a page that is read again comes from the file


@contextmanager
def given_back(data: Path) -> Iterator[None]:
    """Meanwhile no page that a file is mapped to stays in memory for long.  Only Linux tells where files are mapped.

    The mapping must be one that nobody writes to, as ONNX Runtime's of external data is.
    """
    if sys.platform != "linux" or not data.is_file() or data.stat().st_size < SMALL:
        yield
        return
    library, name, ends = ctypes.CDLL(None), str(data.resolve()), threading.Event()

    def give_back() -> None:
        ended = False
        while not ended:  # once more at the end: what was packed last
            ended = ends.wait(EVERY)
            with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
                for line in maps:
                    if line.rstrip("\n").endswith(name):
                        begin, end = (int(at, 16) for at in line.partition(" ")[0].split("-"))
                        library.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), DONTNEED)

    thread = threading.Thread(target=give_back, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
