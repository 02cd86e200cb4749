"""Runs a piece of Python in a process of its own, with little memory and time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_limited(code: str, *arguments: object, megabytes: int = 600, seconds: int = 60) -> str:
    """The standard output of `code`; its sys.argv[1:] are `arguments`, its address space is `megabytes`."""
    pytest.importorskip("resource", reason="needs RLIMIT_AS")
    size = megabytes << 20
    head = f"import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, ({size}, {size}))\n"
    head += f"sys.path.insert(0, {str(ROOT)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", head + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={"OPENBLAS_NUM_THREADS": "1", "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
