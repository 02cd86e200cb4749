"""Tries what a confined process must not be able to do; a job of `confined`, for `zoo doctor`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

MORE_MEMORY = 1 << 30  # bytes: more than the job has


def prepare() -> None:
    """Nothing has to be opened beforehand."""


def find_freedoms() -> bytes:
    """The names of what was possible, of files, network, processes and memory."""
    tries = {"files": _open_file, "network": _open_socket, "processes": _start_process, "memory": _take_memory}
    found = []
    for name, act in tries.items():
        try:
            act()
            found.append(name)
        except (OSError, MemoryError, subprocess.SubprocessError):
            pass
    return " ".join(found).encode()


def _open_file() -> None:
    with open(__file__, "rb"):
        pass


def _open_socket() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def _start_process() -> None:
    if hasattr(os, "fork"):
        if not (child := os.fork()):
            os._exit(0)
        os.waitpid(child, 0)
    else:
        subprocess.run([sys.executable, "-c", ""], check=True, timeout=20)


def _take_memory() -> None:
    bytearray(MORE_MEMORY)  # no page of it is touched
