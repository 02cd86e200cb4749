"""The keys of graphs on disk: all bytes of the weights, and the code that makes graphs, but no times of files."""

from __future__ import annotations

import gc
import json
import os

import numpy as np
import pytest
from test_graph_cache import IDS, given

import zoo
from parity.checkpoints import build
from zoo.engines.onnx import cache
from zoo.typing import RawTensor
from zoo.weights.safetensors import SafetensorsFile, write_safetensors

pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")


def test_one_number_makes_another_model(tmp_path, kept, traces):
    """In a file of the same size and times, which no sample of the numbers tells from the other."""
    folder = build("bert-base-uncased", tmp_path / "a")
    path, before = folder / "model.safetensors", given(folder)
    about, source = path.stat(), SafetensorsFile(path)
    tensors = {name: source.read(name) for name in source.names()}
    name = next(name for name in tensors if name.endswith("layer.0.attention.self.value.weight"))
    array = np.array(tensors[name].array)
    array[1:4] += 3
    write_safetensors(tmp_path / "other.safetensors", {**tensors, name: tensors[name]._replace(array=array)})
    gc.collect()  # the sessions that map the file, as Windows replaces none that is mapped
    (tmp_path / "other.safetensors").replace(path)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert path.stat().st_size == about.st_size
    assert not np.allclose(given(folder), before)
    assert traces == ["forward", "forward"]


def test_the_same_weights_elsewhere_have_the_same_graph(tmp_path, kept, traces):
    """Until the file that the graph refers to has other numbers, or is gone."""
    a, b = (build("bert-base-uncased", tmp_path / name) for name in "ab")
    wanted = given(a)
    np.testing.assert_array_equal(given(b), wanted)
    assert traces == ["forward"]
    gc.collect()
    build("bert-base-uncased", a, seed=1)
    np.testing.assert_array_equal(given(b), wanted)
    assert traces == ["forward"] * 2
    assert not np.allclose(given(a), wanted)
    (a / "model.safetensors").unlink()
    np.testing.assert_array_equal(given(b), wanted)


@pytest.mark.parametrize("to_files", [True, False], ids=["stored weights", "embedded weights"])
def test_weights_that_are_replaced_in_memory(to_files, tmp_path, kept, traces, monkeypatch):
    monkeypatch.setattr(cache, "EMBEDDED", cache.EMBEDDED if to_files else 0)
    folder = build("bert-base-uncased", tmp_path / "a")
    before = given(folder)
    models = [zoo.load_model(folder, device=device) for device in ("onnx", None)]
    for model in models:
        dense = model.base_model.layers[0].up
        dense.weight = dense.weight * np.float32(1.5)
        with pytest.raises(ValueError, match="read-only"):
            dense.bias[0] += 1
    found, wanted = (model(IDS) for model in models)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert not np.allclose(found, before)
    np.testing.assert_array_equal(given(folder), before)


def test_adapters_that_differ_in_their_scale_have_other_graphs(tmp_path, kept, traces):
    folder, found = build("bert-base-uncased", tmp_path / "a"), []
    name = "base_model.model.bert.encoder.layer.0.attention.self.query.lora_{}.weight"
    for alpha in (2, 16):
        adapter = tmp_path / f"adapter{alpha}"
        adapter.mkdir()
        config = {"peft_type": "LORA", "r": 1, "lora_alpha": alpha, "target_modules": ["query"]}
        (adapter / "adapter_config.json").write_text(json.dumps(config))
        hidden = json.loads((folder / "config.json").read_text())["hidden_size"]
        pair = {"A": np.full((1, hidden), 0.3, np.float32), "B": np.full((hidden, 1), 0.3, np.float32)}
        tensors = {name.format(k): RawTensor(x, "F32") for k, x in pair.items()}
        write_safetensors(adapter / "adapter_model.safetensors", tensors)
        found.append(zoo.load_model(folder, device="onnx", adapter=adapter)(IDS))
        np.testing.assert_allclose(found[-1], zoo.load_model(folder, adapter=adapter)(IDS), rtol=1e-4, atol=1e-5)
    assert not np.allclose(*found)
    assert traces == ["forward", "forward"]
