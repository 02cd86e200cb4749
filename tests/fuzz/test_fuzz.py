"""Inputs that fuzzing found are refused, every target works, and every kind of fault is noticed."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="needs limits on a process's memory")

from checks.fuzz.__main__ import CORPUS, HANGS, TargetResult, replay, run
from checks.fuzz.child import STATE
from checks.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]


def test_the_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)
    for name, result in replay(list(TARGETS)).items():
        assert result["inputs"] == len(list((CORPUS / name).iterdir()))
        assert not result.failures, name


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.nightly
def test_a_few_inputs(name: str) -> None:
    result = TargetResult()
    run(name, 1, 20, 60, result)
    assert not result.failures
    assert 0 < result["inputs"] <= 60
    assert result["refused"] < result["inputs"], "what it begins with is refused"


def test_inputs_guided_by_coverage() -> None:
    pytest.importorskip("atheris", reason="needs atheris, which has no wheels for some systems")
    result = TargetResult()
    run("words", 1, 20, 60, result, guided=True)
    assert (result["inputs"], result.failures) == (60, {})


@pytest.mark.parametrize("name", TARGETS)
def test_changes_are_those_of_a_seed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seeds = TARGETS[name].seeds()
    first, second = (
        [TARGETS[name].mutate(random.Random(i), seeds[i % len(seeds)]) for i in range(20)] for _ in range(2)
    )
    assert first == second
    assert len(set(first)) > 10


FAULTS = {
    "raw": ("{}['x']", "raw", "KeyError"),
    "memory": ("bytearray(4 << 30)", "raw", "MemoryError"),
    "recursion": ("(f := lambda: f())()", "raw", "RecursionError"),
    "file": (f"open({str(ROOT / 'written')!r}, 'w')", "outside", "written"),
    "folder": ("os.mkdir('/nowhere')", "outside", "os.mkdir"),
    "link": ("os.symlink('/etc', '/etc/zoo')", "outside", "os.symlink"),
    "process": ("os.system('true')", "outside", "os.system"),
    "subprocess": ("__import__('subprocess').run(['true'])", "outside", "subprocess.Popen"),
    "connection": ("__import__('socket').create_connection(('127.0.0.1', 9), 1)", "outside", "socket.connect"),
    "exit": ("os._exit(3)", "ends", ""),
    "abort": ("os.abort()", "ends", ""),
    "hang": ("all(iter(lambda: 1, 0))", "hangs", ""),
}
PLANTED = """
import os, sys
from pathlib import Path
from checks.fuzz.child import main
from checks.fuzz.targets import TARGETS, Target

def planted(data, at):
    if data == b"seed":
        return
    {fault}

TARGETS["planted"] = Target(lambda: [b"seed"], lambda rng, data: b"fault", planted, seconds=0.5, megabytes=500)
main("planted", 1, 30, 3, Path(sys.argv[1]))
"""


# Of each kind one; the others every night.
OFTEN = ("raw", "file", "process", "exit", "hang")


@pytest.mark.parametrize(
    ("fault", "kind", "says"),
    [
        pytest.param(*fault, id=name, marks=() if name in OFTEN else pytest.mark.nightly)
        for name, fault in FAULTS.items()
    ],
)
def test_faults_are_noticed(tmp_path: Path, fault: str, kind: str, says: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLANTED.format(fault=fault), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
    )
    if kind in ("raw", "outside"):
        first = done.stdout.splitlines()[0].split("\t")
        assert first[0] == kind, done.stdout + done.stderr
        assert says in first[2]
        assert Path(first[1]).read_bytes() == b"fault"
    else:
        assert "done" not in done.stdout
        assert (done.returncode in HANGS) == (kind == "hangs")
        assert (tmp_path / "current").read_bytes()[STATE.size :] == b"fault"
    assert not (ROOT / "written").exists()
