"""`zoo parity NAME --weights q8_0`: what a GGUF file's type costs, and that its numbers are llama.cpp's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: parity's reference")
pytest.importorskip("transformers", reason="needs transformers: parity's reference")
pytest.importorskip("gguf", reason="needs gguf, which writes the files")

import zoo
from parity.cases import Case
from parity.rounding import beside_the_package, run_rounded
from zoo.apps.gguf_export.export import export
from zoo.hub import find
from zoo.quant import ggml

OWN = Path(zoo.__file__).parent / "data" / "stories260k"


def test_a_type_holds_and_says_what_it_costs():
    found = run_rounded(Case(str(OWN)), "q8_0")
    assert found.wrong == []
    named = {m.name: m.value for m in found.measures}
    assert named["error beside gguf's numbers"] == 0
    assert 0 < named["KL of logits"] < 0.005
    assert 0.99 < named["perplexity / float32's"] < 1.01


@pytest.mark.parametrize("fault", ["halves of a byte swapped", "blocks in another order"])
def test_planted_faults_are_found(fault, monkeypatch, tmp_path):
    nibbles = ggml._nibbles
    if fault.startswith("halves"):
        monkeypatch.setattr(ggml, "_nibbles", lambda qs, width: nibbles(qs >> 4 | qs << 4, width))
    else:
        monkeypatch.setattr(ggml, "_nibbles", lambda qs, width: np.roll(nibbles(qs, width), 1, axis=0))
    there = find(export(zoo.load(OWN), tmp_path / "model.gguf", "q4_0"))
    assert beside_the_package(there).value > 0.01
