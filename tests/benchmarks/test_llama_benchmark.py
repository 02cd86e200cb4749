"""The benchmarks of Llama run on a tiny checkpoint, and write what they print.  Nobody asserts a time."""

from __future__ import annotations

import json

import pytest

from benchmarks import llama, pages, quantised

pytest.importorskip("torch", reason="needs torch, which a contender computes with")
pytest.importorskip("transformers", reason="needs transformers, a contender")


@pytest.mark.nightly
def test_llama(tmp_path, printed_by):
    path = tmp_path / "out.json"
    options = ["--model", "llama-tiny", "--rounds", "1", "--tokens", "4", "--cache", str(tmp_path), "--json", str(path)]
    only = ["zoo bf16", "zoo float32", "transformers float32"]
    out = printed_by(llama, *options, "--only", *only)
    result = json.loads(path.read_text())
    assert list(result["runs"]) == only
    for (run,) in result["runs"].values():
        assert len(run["chosen"]) == 4
        assert run["first"] > run["loaded"] > 0
    (ratio,) = [r for r in result["ratios"] if (r["what"], r["ours"]) == ("decode", "zoo float32")]
    ours, theirs = (result["runs"][name][0]["decode"] for name in only[1:])
    assert ratio["ratio"] == pytest.approx(ours / theirs)
    assert "of memory's speed" in out


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
