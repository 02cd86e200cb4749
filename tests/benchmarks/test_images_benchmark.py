"""The benchmark of images beside llama.cpp: its files, and its table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import images, pages


def test_the_table_has_times_and_ratios():
    run = {"first": 12.5, "token": 0.05, "peak": 2e9}
    runs = {"zoo onnx int4": [run, {**run, "first": 12.0}], "llama.cpp q4_0, mmproj f16": [{**run, "first": 24.0}]}
    ratio = {
        "what": "first",
        "ours": "zoo onnx int4",
        "theirs": "llama.cpp q4_0, mmproj f16",
        "ratio": 0.5,
        "target": 1.1,
    }
    table = pages.KINDS["images"].tables({"runs": runs, "differences": dict.fromkeys(runs, 0.05), "ratios": [ratio]})
    assert "| zoo onnx int4 | 12.0 | 50.0 | 2,000 MB | 0.050 |" in table
    assert "| first: zoo onnx int4 / llama.cpp q4_0, mmproj f16 | **0.50** | 1.10 |" in table


@pytest.mark.nightly
def test_both_sides_have_the_same_matrices(tmp_path: Path):
    gguf = pytest.importorskip("gguf", reason="needs gguf, which writes llama.cpp's files")
    import zoo
    from zoo.weights.files import open_weights

    folder = images._write("tiny", tmp_path / "cache", tmp_path)
    reader = gguf.GGUFReader(folder / "model.gguf")
    packed = next(one for one in reader.tensors if one.name == "blk.1.ffn_up.weight")
    theirs = gguf.quants.dequantize(packed.data, packed.tensor_type)
    raw: Any = open_weights(folder / "zoo").read("model.layers.1.mlp.up_proj.weight")
    ours = (np.asarray(raw.array).astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(ours, theirs, rtol=2**-8)
    config = json.loads((folder / "zoo" / "config.json").read_text())
    model = zoo.load_model(folder / "zoo", weights="int4")
    assert model.config.image_token_id == config["image_token_id"]
    assert {one.name for one in gguf.GGUFReader(folder / "mmproj-f16.gguf").tensors} >= {
        "mm.2.weight",
        "v.post_ln.weight",
    }
