"""What a killed process has left is removed by the next one, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fcntl", reason="needs the locks of POSIX systems")
ROOT = Path(__file__).resolve().parents[2]
WRITE = """
import sys, time
from pathlib import Path
from zoo.files.atomic_folder import atomic_folder
from zoo.files.atomic_write import atomic_write
from zoo.files.leftovers import temporary_folder

with atomic_folder(Path("saved")) as a, atomic_write(Path("state.pt")) as b, temporary_folder() as c:
    for path in (a / "weights", b, c / "graph"):
        path.write_bytes(b"half")
    print(flush=True)
    {then}
"""


def writer(folder: Path, then: str) -> subprocess.Popen[str]:
    """A process that is in the middle of writing, or has done what `then` says."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    command = [sys.executable, "-c", WRITE.format(then=then)]
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline()
    return process


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_next_process_removes_what_a_killed_one_left(tmp_path):
    with writer(tmp_path, "time.sleep(600)") as process:
        half = names(tmp_path)
        assert len(half) == 3
        with writer(tmp_path, "pass") as other:  # while the first one writes
            other.wait(60)
        assert set(names(tmp_path)) == {*half, "saved", "state.pt"}
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    with writer(tmp_path, "pass") as other:
        other.wait(60)
    assert names(tmp_path) == ["saved", "state.pt"]


def test_what_is_not_a_leftover_stays(tmp_path):
    """Of another name, of a process that runs, locked by one that this machine does not show, or a link."""
    from zoo.files.leftovers import _looked_at, keep_from_cleaning, remove_leftovers

    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    pid = int(gone.stdout)
    left, stay = (
        f".x.{pid}-1.part",
        [f".x.{os.getpid()}-1.part", f".y.{pid}-2.part", "zoo-data", f"zoo-{pid}", "a.part"],
    )
    for name in (left, *stay):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / f".z.{pid}-3.part").symlink_to(tmp_path / "zoo-data")
    (tmp_path / f"zoo-{pid}-abcdefgh.part").mkdir()
    with keep_from_cleaning(tmp_path / f".y.{pid}-2.part"):
        remove_leftovers(tmp_path)
    assert names(tmp_path) == sorted([*stay, f".z.{pid}-3.part"])
    _looked_at.discard(tmp_path)
