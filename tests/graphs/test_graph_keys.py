"""The keys of graphs on disk: all bytes of the weights, and the code that makes graphs, but no times of files."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_families import model_of, records
from test_graph_cache import IDS, given

import zoo
from parity.checkpoints import build
from parity.specs import FIRST
from zoo.engines.onnx import cache
from zoo.engines.onnx.trace import trace
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
    monkeypatch.setattr(cache, "MAX_EMBEDDED_BYTES", cache.MAX_EMBEDDED_BYTES if to_files else 0)
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


def copied_program(tmp_path: Path, monkeypatch) -> Path:
    """A copy of the package's source files, which the key of graphs is made of from now on."""
    package = tmp_path / "copy" / "zoo"
    shutil.copytree(Path(zoo.__file__).parent, package, ignore=shutil.ignore_patterns("data", "__pycache__"))
    monkeypatch.setattr(cache, "__file__", str(package / "engines/onnx/cache.py"))
    return package


def test_only_code_that_makes_graphs_makes_others(tmp_path, monkeypatch):
    program = cache.program.__wrapped__
    before, package = program(), copied_program(tmp_path, monkeypatch)
    assert program() == before  # a copy, with other times
    for path in package.rglob("*.py"):
        os.utime(path, (1, 1))
    assert program() == before
    for name in ("apps/tables/context.py", "tasks/base.py", "engines/triton/__init__.py", "text/chat.py"):
        with (package / name).open("a") as file:
            file.write("# more\n")
    assert program() == before
    for name in (
        "nn.py",
        "rope.py",
        "models/bert/model.py",
        "ops/__init__.py",
        "engines/onnx/trace.py",
        "inputs/texts.py",
    ):
        path = package / name
        content = path.read_bytes()
        path.write_bytes(content.replace(b"1", b"2"))  # of the same size
        assert program() != before, name
        path.write_bytes(content)
    (package / "models/bert/more.py").write_text("")
    assert program() != before


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if i % 24 else ()) for i, name in enumerate(FIRST)]
)
def test_the_key_covers_the_code_that_runs_while_a_model_is_traced(name, tmp_path, kept):
    package, outside = Path(zoo.__file__).parent, set()

    def note(frame: Any, event: str, arg: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and package in path.parents:
            file = path.relative_to(package).as_posix()
            if not file.startswith(cache.PROGRAM):
                outside.add(file)

    model = model_of(name, tmp_path / "a")
    given = records(model, 0)
    sys.setprofile(note)
    try:
        trace(model.forward, *given, masks=False, on_cpu=True)
    finally:
        sys.setprofile(None)
    assert not outside
