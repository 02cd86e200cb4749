"""The GPU script: its stages run in Triton's interpreter, lose nothing when time runs out or a process dies, and name
what they did not run.  Nothing asserts a time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch, which the script computes with")
import torch

import benchmarks
from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu import measure, suites
from benchmarks.gpu.measure import Bench, BenchRow, StageReport, slug
from benchmarks.gpu.table import table
from zoo.errors import InputError

ROOT = Path(benchmarks.__file__).parent.parent


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@pytest.fixture
def bench(tmp_path) -> Bench:
    """A stage's own view of things, on CPU tensors."""
    return Bench("cpu", "NVIDIA H100 80GB HBM3", True, False, tmp_path, 1, "")


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
    monkeypatch.setattr(measure, "FLUSHED", 1 << 16)
    monkeypatch.setattr(measure, "TURN", 1e-3)


@pytest.mark.nightly
@needs("triton", "transformers")
def test_stages(tmp_path):
    """It sees no GPU, so that it is the interpreter's everywhere."""
    only = r"T33 S33 H2 G2|S70|^RMS norm|bert"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.gpu", "kernels", "models", "--only", only]
    done = subprocess.run([*command, "--tiny", "--json-dir", tmp_path], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {one["stage"]: one for one in (json.loads(path.read_text()) for path in tmp_path.glob("gpu-*.json"))}
    assert found.keys() == {"kernels", "models"}
    for one in found.values():
        assert one["environment"]["device"] == one["environment"]["card"] == "interpreter"
        assert {"torch", "triton", "transformers", "numpy", "zoo"} <= one["environment"]["versions"].keys()
        assert (one["running"], one["not_run"]) == (None, [])
        for row in one["rows"]:
            assert "error" not in row, row
            assert not any(row.get("times", {}).values()), "the interpreter's times mean nothing"
    compared = found["kernels"]["rows"] + found["models"]["rows"]
    assert {row["row"].split()[0] for row in compared} == {"attention", "decode", "RMS", "bert-base,"}
    for row in compared:
        assert row["times"].keys() == row["errors"].keys() > {"zoo"}
        assert row["errors"]["zoo"] <= row["allowed"]
    assert {"transformers eager", "transformers sdpa"} <= found["models"]["rows"][0]["times"].keys()


def test_without_a_gpu_only_tiny_sizes(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as e, measure.opened(False, tmp_path):
        pass
    assert e.value.code == gpu.NO_GPU == measure.NO_GPU


def test_a_report_loses_nothing(bench, tmp_path):
    """A row that fails is named, rows out of time are listed, and a process that died loses one row."""
    path = tmp_path / "r.json"
    bench.free = bench.synchronize = lambda: None

    def fails():
        bench.end = 0
        return 1 / 0

    rows = [
        BenchRow("works", lambda: {"summary": "1"}),
        BenchRow("fails", fails),
        BenchRow("long", lambda: pytest.fail("it ran")),
    ]
    StageReport(path, "kernels", {}).run(bench, rows)
    found = json.loads(path.read_text())
    assert [row["row"] for row in found["rows"]] == ["works", "fails"]
    assert found["rows"][1]["error"] == "ZeroDivisionError: division by zero"
    assert found["not_run"] == ["long"]
    path.write_text(json.dumps(found | {"running": "deadly"}))
    StageReport(path, "kernels", {}, resume=True, ended="its process ended with status -11")
    assert json.loads(path.read_text())["rows"][2]["error"] == "its process ended with status -11"
    bench.end = time.monotonic() + 60
    again = [BenchRow(name, lambda: {"summary": "2"}) for name in ("works", "fails", "deadly")]
    StageReport(path, "kernels", {}, resume=True).run(bench, again)
    assert [row["summary"] for row in json.loads(path.read_text())["rows"]] == ["1", "2", "2"]


def test_a_stage_resumes_in_another_process(monkeypatch, tmp_path):
    ends, calls = [-11, None, 0], []

    def process(name, today, seconds, ended, args):
        calls.append(ended)
        return ends[len(calls) - 1]

    monkeypatch.setattr(gpu, "_run", process)
    assert gpu.main(["kernels", "--tiny", "--json-dir", str(tmp_path)]) == 0
    assert calls == ["", "its process ended with status -11", "it did not end in time"]


def test_a_process_that_hangs_is_stopped(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "GRACE", 0)
    args = gpu._parser().parse_args(["kernels", "--tiny", "--json-dir", str(tmp_path)])
    assert gpu._run("kernels", "2026-01-01", 0.2, "", args) is None


@pytest.mark.usefixtures("watch")
def test_times_become_ratios_and_shares(bench):
    x = torch.randn(64, 64)
    bench.ceilings = {"copy": 100.0}

    def refuses():
        raise RuntimeError("No available kernel")

    calls = {"zoo": lambda: x @ x, "torch": lambda: x @ x, "cudnn": refuses}
    row = measure.compare(bench, calls, lambda: x.double() @ x.double(), 2.0**-24, bytes=1e6)
    zoo, peer = row["times"]["zoo"], row["times"]["torch"]
    assert row["refused"] == {"cudnn": "RuntimeError: No available kernel"}
    ratios = sorted(a / b for a, b in zip(zoo["rounds_ms"], peer["rounds_ms"], strict=True))
    assert row["ratios"]["torch"]["ratio"] == pytest.approx(ratios[measure.ROUNDS // 2])
    assert row["gb_per_second"]["zoo"] == pytest.approx(1e-3 / (zoo["median_ms"] / 1e3))
    assert row["share"]["zoo"] == pytest.approx(row["gb_per_second"]["zoo"] / 100)


@pytest.mark.parametrize("factor", [1.01, float("nan")])
@pytest.mark.usefixtures("watch")
def test_what_is_wrong_is_not_timed(bench, factor):
    x = torch.ones(8)
    row = measure.compare(bench, {"zoo": lambda: x * factor, "torch": lambda: x * 1.001}, x.double, 2.0**-24)
    assert re.match(r"the error is (1.0e-02|1.0e\+30), at most 3.0e-03 was expected", row["wrong"])
    assert row["times"] == {"zoo": None, "torch": None}


def test_table_shows_rows_that_lose_and_rows_that_fail(bench, tmp_path):
    facts = {"device": "gpu", "card": bench.card, "driver": "580.1", "date": "2026-11-22T10:00:00+00:00"}
    facts |= {"python": "3.12.3", "versions": {"zoo": "0.1.0", "torch": "2.11.0+cu130"}}
    path = tmp_path / f"gpu-{slug(bench.card)}-kernels-2026-11-22.json"
    assert path.name == "gpu-h100-80gb-hbm3-kernels-2026-11-22.json"
    report = StageReport(path, "kernels", facts)
    bench.ceilings = {"copy": 2000.0}
    times = {"zoo": [2e-3], "torch": [4e-3], "torch.compile": [1e-3]}
    report.add("norm 3 x 4", measure.rated(bench, times, bytes=2e9))
    report.add("softmax 3 x 4", {"error": "RuntimeError: out of resources"})
    report.found["not_run"] = ["rope 1 x 2"]
    report.write()
    text = table([path])
    assert (
        "2026-11-22 on one NVIDIA H100 80GB HBM3 (driver 580.1), Python 3.12.3, zoo 0.1.0, torch 2.11.0+cu130" in text
    )
    assert "| norm 3 x 4 | 2 ms, 1,000 GB/s | torch.compile: 1 ms, 2,000 GB/s | 2.00 | 50% of a copy |" in text
    assert "- softmax 3 x 4: RuntimeError: out of resources" in text
    assert "Out of time, not run: rope 1 x 2." in text
    StageReport(path, "kernels", {"device": "interpreter"})
    with pytest.raises(InputError, match="written on the interpreter, where nothing is timed"):
        table([path])


def test_suites_run_beside_each_other(bench):
    report = StageReport(bench.folder / "r.json", "tests", {})
    commands = {"good": "print('1 passed')", "bad": "print('1 failed'); raise SystemExit(1)"}
    suites.run(bench, report, [suites.Suite(name, [sys.executable, "-c", c]) for name, c in commands.items()])
    good, bad = report.found["rows"]
    assert good["summary"] == "1 passed"
    assert bad["error"] == "1 failed; exit status 1"


def test_list(capsys):
    assert gpu.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(gpu.STAGES)
    for stage in ("kernels", "models", "rank"):
        assert gpu.main(["--list", stage]) == 0
        rows = [line.strip() for line in capsys.readouterr().out.splitlines()[1:]]
        assert len(rows) == len(set(rows)) > 10, "rows are known by their names"
    for stage, row in (("tests", "tests/runner"), ("parity", "parity bfloat16, part 1")):
        assert gpu.main(["--list", stage, "--only", f"^{row}"]) == 0
        assert [line.strip() for line in capsys.readouterr().out.splitlines()[1:]] == [row]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["table"], "no files: expected those that python -m benchmarks.gpu wrote"),
        (["table", "half.json"], "half.json is no file that python -m benchmarks.gpu wrote: KeyError: 'rows'"),
        (["kernel"], "there is no stage kernel: expected all, table, bandwidth.* did you mean 'kernels'"),
        ([], "no stage is named: expected all"),
        (["kernels", "--tiny", "--only", "zzz"], "--only 'zzz': no row of kernels matches, --list shows all\n"),
        (["all", "--only", "("], r"--only '\(' is not a regular expression: missing \)"),
        (["all", "--minutes", "nan"], "--minutes nan: expected a number above 0"),
        (["all", "--tiny", "--json-dir", "half.json"], "--json-dir .*half.json: no folder can be made there"),
    ],
)
def test_wrong_usage_is_one_line_before_anything_runs(monkeypatch, tmp_path, capsys, args, says):
    monkeypatch.setattr(gpu, "_run", lambda *_: pytest.fail("a process began"))
    monkeypatch.chdir(tmp_path)
    Path("half.json").write_text('{"stage": "kernels", "environment": {"device": "gpu"}}', encoding="utf-8")
    assert gpu.main(args) == 2
    err = capsys.readouterr().err
    assert re.match(f"benchmarks.gpu: .*{says}", err), err
    assert err.count("\n") == 1
