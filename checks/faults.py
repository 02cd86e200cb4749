"""Faults at a chosen change of files: what arms checks/faults.c, in a process that was started with it.

A change is a write, a rename, an fsync, a file or folder made, emptied or removed, by whichever library.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT, KILL, DISK_FULL = 1, 2, 3  # of faults.c: only count, kill the process, no room from there on
LIBRARY = "ZOO_FAULTS"


def begin_again(module: str) -> None:
    """Start this process again with the faults in it, unless they are."""
    if LIBRARY in os.environ:
        return
    library = Path(tempfile.mkdtemp(prefix="zoo-faults-"), "faults.so")
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    environment = {**os.environ, LIBRARY: str(library), "LD_PRELOAD": str(library), "PYTHONDONTWRITEBYTECODE": "1"}
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], environment)


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ[LIBRARY])
    library.faults_arm.argtypes = [ctypes.c_int, ctypes.c_long]
    library.faults_seen.restype = ctypes.c_long
    return library


def arm(how: int, change: int = 0) -> None:
    """From now on count this process's changes, and stop it at the n-th."""
    _library().faults_arm(how, change)


def change_count() -> int:
    """The number of changes that the fork which was armed last has made."""
    return _library().faults_seen()
