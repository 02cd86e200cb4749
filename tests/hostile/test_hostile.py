"""Hostile files in a process that watches what they do: each is refused with one error, or its trick is ignored.

`python -m tests.hostile FOLDER` prints what came of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("resource", reason="needs limits of memory and time, which Windows has not")
for _package in ("jinja2", "tokenizers", "pypdfium2", "av", "onnx", "onnxruntime", "pyarrow", "safetensors"):
    pytest.importorskip(_package, reason=f"needs {_package}, which opens some of the files")

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def _cases() -> Any:
    from tests.hostile import configs, files, graphs, templates, weights  # noqa: F401  # which add their cases
    from tests.hostile.case import CASES

    return CASES


CASES = _cases()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What came of each case.  A case that ends the process is a crash, and the next ones have another process."""
    root, found = tmp_path_factory.mktemp("hostile"), dict[str, dict[str, Any]]()
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "HOME": str(root), "TMPDIR": str(root), "HF_HUB_OFFLINE": "1", "PYTHONPATH": paths}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    while left := [name for name in CASES if name not in found]:
        folder = root / f"process-{len(found)}"
        folder.mkdir()
        command = [sys.executable, "-B", "-m", "tests.hostile", str(folder), *left]
        child = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        found |= {line["name"]: line for line in lines if "name" in line}
        if child.returncode:
            name = lines[-1]["begins"] if lines else left[0]
            said = f"status {child.returncode}: {child.stderr[-2000:]}"
            found[name] = {"outcome": "crash", "said": said, "done": [], "mb": 0}
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file(outcomes: dict[str, dict[str, Any]], name: str) -> None:
    case, found = CASES[name], outcomes[name]
    assert found["done"] == [], found
    assert found["outcome"] == ("refused" if case.says else "loaded"), found
    assert case.says in found["said"]
    assert found["mb"] < 600


def test_the_canaries_sing(tmp_path: Path) -> None:
    """What each must notice is noticed: code, a read outside, a write outside, a connection, an import."""
    script = f"""
import os, socket, sys, pickle
from pathlib import Path
from tests.hostile.__main__ import Canary
from tests.hostile.case import touch
folder = Path({str(tmp_path)!r}) / "in"
folder.mkdir()
(folder.parent / "secret.txt").write_text("x")
watch = Canary(folder, starts=True)
watch.on = True
for act in (
    lambda: open(folder.parent / "secret.txt").read(),
    lambda: open(folder.parent / "other", "w"),
    lambda: pickle.loads(touch(folder)),
    lambda: os.system("true"),
    lambda: socket.getaddrinfo("127.0.0.1", 9),
    lambda: __import__("evil"),
):
    watch.seen = ""
    try:
        act()
    except BaseException:
        pass
    print(bool(watch.seen))
"""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-B", "-c", script]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 6
