"""The GPU script: its stages run in Triton's interpreter, lose nothing when time runs out or a process dies, and name
what they did not run.  Nobody asserts a time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch, which the script computes with")
import torch

import benchmarks
from benchmarks import gpu, gpu_measure
from benchmarks.gpu_measure import Bench, Case, Clock
from benchmarks.gpu_report import Report, Row, run_rows, slug
from benchmarks.gpu_stages.suites import read_parity, read_tests
from benchmarks.gpu_table import table
from zoo.errors import InputError

ROOT = Path(benchmarks.__file__).parent.parent


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def run(folder: Path, *args: str) -> dict[str, dict]:
    """The files of a run, by stage.  It sees no GPU, so that it is the interpreter's everywhere."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.gpu", *args, "--tiny", "--json-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return {found["stage"]: found for found in (json.loads(path.read_text()) for path in folder.glob("gpu-*.json"))}


def bench(folder: Path, minutes: float = 1, interpreted: bool = False) -> Bench:
    """A stage's own view of things, on CPU tensors."""
    return Bench("cpu", "NVIDIA H100 80GB HBM3", True, interpreted, Clock(minutes), folder)


@pytest.fixture
def watch(monkeypatch):
    """The clock of the host in place of the device's events."""

    class Event:
        def __init__(self, enable_timing: bool):
            assert enable_timing

        def record(self):
            self.at = time.perf_counter()

        def elapsed_time(self, other):
            return 1e3 * (other.at - self.at)

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(gpu_measure, "FLUSHED", 1 << 16)
    monkeypatch.setattr(gpu_measure, "TURN", 1e-3)


@pytest.mark.slow
@needs("triton", "transformers")
def test_stages(tmp_path):
    only = r"^copy$|T33 S33 H2 K64|S70|^RMS norm|bert|^parity bfloat16"
    found = run(tmp_path, "bandwidth", "kernels", "models", "parity", "--only", only)
    assert found.keys() == {"bandwidth", "kernels", "models", "parity"}
    for one in found.values():
        assert one["environment"]["device"] == one["environment"]["card"] == "interpreter"
        assert {"torch", "triton", "transformers", "numpy", "zoo"} <= one["environment"]["versions"].keys()
        assert one["running"] is None
        assert one["not_run"] == []
        for row in one["rows"]:
            assert "error" not in row, row
            assert not any(row.get("times", {}).values()), "the interpreter's times mean nothing"
    names = {stage: [row["row"] for row in one["rows"]] for stage, one in found.items()}
    assert names["bandwidth"] == ["copy"]
    assert names["parity"] == ["parity bfloat16, part 1"]
    assert found["parity"]["rows"][0]["cases"][0]["holds"] is True
    compared = found["kernels"]["rows"] + found["models"]["rows"]
    assert {row["row"].split()[0] for row in compared} == {"attention", "decode", "RMS", "bert-base,"}
    for row in compared:
        assert row["times"].keys() == row["errors"].keys()
        assert "zoo" in row["times"]
        assert len(row["times"]) >= 2, "a row has both sides"
        assert row["errors"]["zoo"] <= row["allowed"]
    assert {"transformers eager", "transformers sdpa"} <= found["models"]["rows"][0]["times"].keys()


@pytest.mark.slow
@needs("triton")
def test_candidates_are_compiled_in_other_processes_and_compared(tmp_path):
    (row,) = run(tmp_path, "rank", "--only", "^RMS norm")["rank"]["rows"]
    assert row["best"] is None
    assert row["table"].startswith("RowConfig(")
    assert row["refused"] == {}
    assert row["summary"].startswith("2 candidates agree")


def test_without_a_gpu_only_tiny_sizes(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as e, gpu_measure.opened(False, 1, tmp_path):
        pass
    assert e.value.code == gpu_measure.UNFIT


def test_out_of_time_is_listed_and_what_fails_is_named(tmp_path):
    report = Report(tmp_path / "r.json", "kernels", {})

    def fails():
        raise ValueError("no such shape")

    rows = [
        Row("works", 0, lambda: {"summary": "1"}),
        Row("fails", 0, fails),
        Row("long", 100, dict),
        Row("last", 0, dict),
    ]
    at = bench(tmp_path)
    at.free = at.synchronize = lambda: None
    run_rows(at, report, rows)
    found = json.loads((tmp_path / "r.json").read_text())
    assert [row["row"] for row in found["rows"]] == ["works", "fails", "last"]
    assert found["rows"][1]["error"] == "ValueError: no such shape"
    assert "in fails" in found["rows"][1]["traceback"]
    assert found["not_run"] == ["long"]


def test_a_process_that_dies_loses_one_row(tmp_path):
    path = tmp_path / "r.json"
    report = Report(path, "kernels", {})
    report.add("first", {"summary": "1"})
    report.begin("deadly")  # and here the process ends
    rows = [Row(name, 0, lambda: {"summary": "2"}) for name in ("first", "deadly", "next")]
    run_rows(bench(tmp_path, interpreted=True), Report.again(path, "its process ended with status -11"), rows)
    found = json.loads(path.read_text())["rows"]
    assert [row["row"] for row in found] == ["first", "deadly", "next"]
    assert [row.get("summary") for row in found] == ["1", None, "2"]
    assert found[1]["error"] == "its process ended with status -11"
    again = Report.again(path, "")
    again.forget_failed()
    assert again.done == {"first", "next"}


def test_a_stage_goes_on_in_another_process(monkeypatch, tmp_path):
    ends, calls = [-11, None, gpu_measure.LOST, 0], []

    def process(name, today, seconds, ended, args):
        calls.append(ended)
        return ends[len(calls) - 1]

    monkeypatch.setattr(gpu, "_run", process)
    assert gpu.main(["kernels", "--tiny", "--json-dir", str(tmp_path)]) == 0
    assert calls[:3] == ["", "its process ended with status -11", "it did not end in time"]
    assert "CUDA context" in calls[3]


def test_a_process_that_hangs_is_stopped(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "GRACE", 0)
    args = gpu._parser().parse_args(["kernels", "--tiny", "--json-dir", str(tmp_path)])
    begin = time.monotonic()
    assert gpu._run("kernels", "2026-01-01", 0.2, "", args) is None
    assert time.monotonic() - begin < 10


@pytest.mark.usefixtures("watch")
def test_times_become_ratios_and_shares(tmp_path):
    x = torch.randn(64, 64)
    at = bench(tmp_path)
    at.ceilings = {"copy": 100.0}

    def refuses():
        raise RuntimeError("No available kernel")

    calls = {"zoo": lambda: x @ x, "torch": lambda: x @ x, "cudnn": refuses}
    row = gpu_measure.compare(at, Case(calls, lambda: x.double() @ x.double(), 2.0**-24, bytes=1e6))
    zoo, peer = row["times"]["zoo"], row["times"]["torch"]
    assert row["refused"] == {"cudnn": "RuntimeError: No available kernel"}
    assert row["ratios"]["torch"]["ratio"] == pytest.approx(
        sorted(a / b for a, b in zip(zoo["rounds_ms"], peer["rounds_ms"], strict=True))[gpu_measure.ROUNDS // 2]
    )
    assert row["gb_per_second"]["zoo"] == pytest.approx(1e-3 / (zoo["median_ms"] / 1e3))
    assert row["share"]["zoo"] == pytest.approx(row["gb_per_second"]["zoo"] / 100)


@pytest.mark.usefixtures("watch")
def test_what_is_wrong_is_not_timed(tmp_path):
    x = torch.ones(8)
    calls = {"zoo": lambda: x * 1.01, "torch": lambda: x * 1.001}
    row = gpu_measure.compare(bench(tmp_path), Case(calls, x.double, 2.0**-24))
    assert row["wrong"] == "the error is 1.0e-02, at most 3.0e-03 was expected"
    assert row["times"] == {"zoo": None, "torch": None}
    nan = gpu_measure.compare(
        bench(tmp_path), Case({"zoo": lambda: x * float("nan"), "torch": lambda: x}, x.double, 1.0)
    )
    assert "wrong" in nan


@pytest.mark.usefixtures("watch")
def test_table_shows_rows_that_lose_and_rows_that_fail(tmp_path):
    facts = {
        "device": "gpu",
        "card": "NVIDIA H100 80GB HBM3",
        "driver": "580.1",
        "date": "2026-11-22T10:00:00+00:00",
        "python": "3.12.3",
        "versions": {"zoo": "0.1.0", "torch": "2.11.0+cu130"},
    }
    path = tmp_path / f"gpu-{slug(facts['card'])}-kernels-2026-11-22.json"
    assert path.name == "gpu-h100-80gb-hbm3-kernels-2026-11-22.json"
    report = Report(path, "kernels", facts)
    at = bench(tmp_path)
    at.ceilings = {"copy": 2000.0}
    times = {"zoo": [2e-3], "torch": [4e-3], "torch.compile": [1e-3]}
    report.add("norm 3 x 4", gpu_measure.timed(at, times, bytes=2e9))
    report.add("softmax 3 x 4", {"error": "RuntimeError: out of resources"})
    report.finish(["rope 1 x 2"])
    text = table([path])
    assert (
        "2026-11-22 on one NVIDIA H100 80GB HBM3 (driver 580.1), Python 3.12.3, zoo 0.1.0, torch 2.11.0+cu130" in text
    )
    assert "| norm 3 x 4 | 2 ms, 1,000 GB/s | torch.compile: 1 ms, 2,000 GB/s | 2.00 | 50% of a copy |" in text
    assert "- softmax 3 x 4: RuntimeError: out of resources" in text
    assert "Out of time, not run: rope 1 x 2." in text


def test_table_refuses_what_was_not_timed(tmp_path):
    path = tmp_path / "gpu-interpreter-kernels-2026-11-22.json"
    Report(path, "kernels", {"device": "interpreter"}).write()
    with pytest.raises(InputError, match="written on the interpreter, where nothing is timed"):
        table([path])
    path.write_text("[]")
    with pytest.raises(InputError, match="is no file that python"):
        table([path])


def test_what_pytest_printed_is_read_though_it_is_cut_short():
    text = """\
tests/kernels/test_norm.py::test_norm[a b] PASSED                        [ 50%]
tests/kernels/test_norm.py::test_other FAILED                            [100%]
=========================== short test summary info ============================
FAILED tests/kernels/test_norm.py::test_other - AssertionError: 3 is not 4
========================= 1 failed, 1 passed in 2.00s =========================
"""
    row = read_tests(text, 1)
    assert row["counts"] == {"passed": 1, "failed": 1, "error": 0, "skipped": 0}
    assert row["failures"] == {"tests/kernels/test_norm.py::test_other": "AssertionError: 3 is not 4"}
    cut = read_tests("\n".join(text.splitlines()[:2]), None)
    assert cut["failures"] == {"tests/kernels/test_norm.py::test_other": ""}
    assert cut["error"] == "1 passed, 1 failed; cut short"
    assert "error" not in read_tests(text.splitlines()[0], 0)
    assert read_tests("", 0)["error"] == "no tests; exit status 0"


def test_a_parity_report_that_is_not_there_is_an_error(tmp_path):
    row = read_parity(tmp_path / "none.json", "parity: no GPU", 2)
    assert row["error"] == "no report: exit status 2: parity: no GPU"


def test_list(capsys):
    assert gpu.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(gpu.STAGES)
    for stage in ("kernels", "models", "rank"):
        assert gpu.main(["--list", stage]) == 0
        rows = [line.strip() for line in capsys.readouterr().out.splitlines()[1:]]
        assert len(rows) == len(set(rows)) > 10, "rows are known by their names"
    for stage, row in (("tests", "tests/runner/test_texts.py"), ("parity", "parity bfloat16, part 1")):
        assert gpu.main(["--list", stage, "--only", f"^{row}"]) == 0
        assert [line.strip() for line in capsys.readouterr().out.splitlines()[1:]] == [row]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["table"], "no files: expected those that python -m benchmarks.gpu wrote"),
        (["table", "none.json"], "none.json is no file that python"),
        (["table", "half.json"], "half.json is no file that python -m benchmarks.gpu wrote: KeyError: 'rows'"),
        (["kernel"], "there is no stage kernel: expected all, table, bandwidth"),
        ([], "no stage is named: expected all"),
        (["kernels", "--tiny", "--only", "zzz"], "--only 'zzz': no row of kernels matches, --list shows all\n"),
        (["kernels", "models", "--only", "rms"], "no row of models, kernels matches, .*; did you mean 'RMS'"),
        (["all", "--only", "Lama"], "did you mean 'Llama"),
        (["all", "--only", "("], r"--only '\(' is no regular expression: missing \)"),
        (["all", "--minutes", "-1"], "--minutes -1: expected a number above 0"),
        (["all", "--minutes", "0"], "--minutes 0: expected"),
        (["all", "--minutes", "nan"], "--minutes nan: expected"),
        (["all", "--tiny", "--json-dir", "half.json"], "--json-dir .*half.json: no folder can be made there"),
    ],
)
def test_wrong_usage_is_one_line_before_anything_runs(monkeypatch, tmp_path, capsys, args, says):
    monkeypatch.setattr(gpu, "_run", lambda *_: pytest.fail("a process began"))
    monkeypatch.chdir(tmp_path)
    Path("half.json").write_text('{"stage": "kernels", "environment": {"device": "gpu"}}')
    assert gpu.main(args) == 2
    err = capsys.readouterr().err
    assert re.match(f"benchmarks.gpu: .*{says}", err), err
    assert err.count("\n") == 1


@pytest.mark.slow
@needs("triton")
def test_an_interrupt_ends_what_runs_and_keeps_what_is_done(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.gpu", "kernels", "--tiny", "--json-dir", str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=env, cwd=tmp_path, **pipes) as process:
        assert process.stdout
        first = next(line for line in process.stdout if line.startswith("kernels: "))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)  # which waits for all that could write: the stage's process too
    assert process.returncode == 130
    assert err == f"benchmarks.gpu: interrupted: what is done is in {tmp_path}\n"
    (path,) = tmp_path.glob("gpu-*.json")
    assert json.loads(path.read_text())["rows"][0]["row"] in first
