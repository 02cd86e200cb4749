"""Kills and full disks, a few of each: the nightly check does hundreds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("how", [[], pytest.param(["--full"], marks=pytest.mark.nightly)])
def test_nothing_is_lost_or_torn(how: list[str]) -> None:
    program = [sys.executable, "-m", "checks.kills", "6", "--only", "map,save", *how]
    found = subprocess.run(program, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert [line.split()[0] for line in found.stdout.splitlines()] == ["map", "save"]
