"""Every stage by ONNX Runtime, from one graph, against transformers."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from parity.cases import case_of
from parity.rounding import run_rounded
from parity.run import run


@pytest.mark.parametrize("name", ["bert-cross-decoder", "vit-mim"])
def test_every_stage_holds(name):
    numpy, onnx = (run(case_of(f"random:{name}", full=False), device=device) for device in (None, "onnx"))
    assert onnx.backend == "onnx"
    assert onnx.holds, onnx.first_divergence
    assert {stage.name for stage in onnx.stages} == {stage.name for stage in numpy.stages}


@pytest.mark.parametrize("name", ["stories260k", "random:trocr-small-printed"])
def test_what_int8_costs(name):
    found = run_rounded(case_of(name, full=False), "int8", device="onnx")
    assert found.wrong == []
    measures = {m.name: m.value for m in found.measures}
    assert 0 < measures["KL of logits"] < 0.05
    assert "error of arithmetic" not in measures  # of products whose inputs are rounded too
    if name == "stories260k":
        assert measures["perplexity"] != measures["perplexity, float32"]
