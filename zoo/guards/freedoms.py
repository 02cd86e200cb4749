"""What a confined process can do on this system although it should not, found by trying it."""

from __future__ import annotations

from pathlib import Path

from .confined import Confined, Job

FREEDOMS = ("files", "network", "processes", "memory")
JOB = Job(
    Path(__file__).parent / "probe_job.py", "find_freedoms", "trying what a confined process can do", wall_seconds=30
)


def find_freedoms() -> list[str]:
    """Those of FREEDOMS that a confined process has here: to open files, ..., to take memory beyond its limit.

    UnsupportedError: no process can be started.
    """
    process = Confined(JOB)
    try:
        return bytes(process.ask(most=1000)).decode().split()
    finally:
        process.close()
