"""`zoo bench`: each contender does the work and counts it; the figures themselves are not tested."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import pytest

import zoo
from zoo.apps import bench as bench_module
from zoo.apps.bench import bench, contender
from zoo.apps.cli import main


@pytest.fixture
def here(monkeypatch):
    """Contenders run in this process, whose jobs are returned."""
    jobs = []

    def run(job):
        jobs.append(job)
        return contender.measure(job)

    monkeypatch.setattr(bench_module, "_run", run)
    return jobs


def test_tokens_are_counted(here, monkeypatch):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, the engine beside NumPy")
    found = bench("stories260k", against=("zoo", "zoo-onnx"), seconds=0, count=7)
    assert (found["unit"], list(found["results"])) == ("tokens/s", ["zoo", "zoo-onnx"])
    for of in found["results"].values():
        assert of["rounds"] == contender.ROUNDS
        assert min(of["load"], of["first"], of["rate"]) > 0
        assert of["memory"] is None or of["memory"] > 10e6  # unknown on Windows
    assert [job["device"] for job in here] == ["cpu", "onnx"]
    run, first = contender._zoo(here[0])
    assert (run(["Once"]), first(["Once"])) == (7, 1)


@pytest.mark.nightly
def test_a_peer_counts_the_same(here, checkpoint):
    pytest.importorskip("transformers")
    for task in ("fill-mask", "embed"):
        found = bench(checkpoint(task), seconds=0, count=3, against=("zoo", "transformers"))
        assert found["unit"] == "texts/s"
        assert [of.get("error") for of in found["results"].values()] == [None, None]
    job = here[-2]
    assert contender._transformers(job)[0](contender.inputs(job)) == contender._zoo(job)[0](contender.inputs(job)) == 3


def test_a_contender_in_its_process(capsys, monkeypatch):
    monkeypatch.setattr(bench_module, "TIMEOUT", 300)
    assert main(["bench", "stories260k", "--against", "zoo", "--seconds", "0", "--count", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"]["zoo"]["rate"] > 0


def test_a_contender_that_fails_is_a_row(monkeypatch, in_terminal):
    done = SimpleNamespace(stdout='{"error": "OSError: no file"}\n', stderr="", returncode=0)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert "OSError: no file" in in_terminal("bench", "stories260k", "--against", "zoo")
    done.stdout, done.stderr, done.returncode = "", "Trace\nKilled: 9\n", -9
    assert bench("stories260k", against=("zoo",))["results"] == {"zoo": {"error": "Killed: 9"}}


def test_what_cannot_be_measured(checkpoint):
    with pytest.raises(zoo.ZooError, match=r"'zo' is not one of zoo, zoo-onnx.*did you mean 'zoo'"):
        bench("stories260k", against=("zo",))
    with pytest.raises(zoo.ZooError, match=r"zoo bench measures embed, fill-mask, classify.*the task is answer"):
        bench(checkpoint("answer"))
