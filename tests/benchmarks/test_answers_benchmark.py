"""The benchmark of answers about images: that its contenders run and write the same, and its table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import answers, pages


def test_the_table_has_times_and_memory():
    run = {"tiles": 1.0, "first": 5.0, "cpu": 9.0, "peak": 2e9}
    row = {"row": "a page", "times": {"zoo": {"median_ms": 9e3}, "transformers": {"median_ms": 18e3}}}
    result = {"rows": [row], "runs": {"zoo": [run], "transformers": [{**run, "peak": 4e9}]}}
    table = pages.KINDS["answers"].tables(result)
    assert "| a page: zoo | 9.0 | 4.0 | 4.0 | **0.50** | 2,000 MB | **0.50** |" in table


@pytest.mark.slow
@pytest.mark.nightly
def test_it_runs(tmp_path: Path):
    for needed in ("onnx", "onnxruntime", "transformers"):
        pytest.importorskip(needed)
    out = tmp_path / "out.json"
    small = ["--size", "tiny", "--tokens", "9", "--clock", "cpu", "--cache", str(tmp_path), "--json", str(out)]
    assert answers.main(small) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert row["same tokens"]["zoo"] == row["same tokens"]["transformers"] == 9
