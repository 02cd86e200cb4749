"""The benchmark of quantised weights runs on a tiny checkpoint, and writes what it prints.  Nobody asserts a time."""

from __future__ import annotations

import json

import pytest

from benchmarks import pages, quantised

pytest.importorskip("torch", reason="needs torch, which a contender computes with")
pytest.importorskip("transformers", reason="needs transformers, a contender")


@pytest.mark.nightly
def test_quantised(tmp_path, printed_by):
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime, which runs the graphs")
    path = tmp_path / "out.json"
    options = ["--model", "llama-tiny", "--rounds", "1", "--tokens", "2", "--contexts", "16"]
    options += ["--cache", str(tmp_path), "--json", str(path)]
    printed_by(quantised, *options, "--only", "zoo int4", "zoo onnx int4")
    result = json.loads(path.read_text())
    assert 0 < result["runs"]["zoo onnx int4"]["difference"] < 0.1
    assert result["making"]["zoo onnx int4"] > 1
    assert "| zoo onnx int4 |" in pages.KINDS["quantised"].tables(result)
