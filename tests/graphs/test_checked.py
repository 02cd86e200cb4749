"""Exports that somebody changed: each ends in one CheckpointError, at the latest in a first, confined run."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.engines.onnx import checked
from zoo.engines.onnx.ops.dims import evaluate
from zoo.errors import CheckpointError

onnx = pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")
pytest.importorskip("resource", reason="needs limits, which Windows has not")
helper, numpy_helper, TensorProto = onnx.helper, onnx.numpy_helper, onnx.TensorProto

METHOD = "BertForMaskedLM.forward"
IDS = np.arange(5, 17).reshape(2, 6)


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    return zoo.export(build("bert-base-uncased", folder / "checkpoint"), folder / "export")


class Export:
    """A copy of an export whose graph and signature are changed."""

    def __init__(self, folder: Any):
        self.folder, self.index = folder, json.loads((folder / "model.onnx.index.json").read_text())
        self.about = self.index["metadata"]["graphs"][METHOD]
        self.signature = json.loads(self.about["signature"])
        self.model = onnx.load(folder / "model.onnx", load_external_data=False)

    def run(self) -> Any:
        data = self.model.SerializeToString()
        (self.folder / "model.onnx").write_bytes(data)
        self.about |= {"sha256": hashlib.sha256(data).hexdigest(), "signature": json.dumps(self.signature)}
        (self.folder / "model.onnx.index.json").write_text(json.dumps(self.index))
        return zoo.load_model(self.folder, device="onnx")(IDS)

    def replace_logits(self, *nodes: Any, **constants: np.ndarray) -> None:
        """Nodes before the output; they make "fake" (), which is added to the logits."""
        graph = self.model.graph
        for node in graph.node:
            for i, name in enumerate(node.output):
                if name == "logits":
                    node.output[i] = "honest"
        graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
        graph.node.extend([*nodes, helper.make_node("Add", ["honest", "fake"], ["logits"])])


@pytest.fixture
def changed(export, tmp_path, monkeypatch):
    monkeypatch.setattr(checked, "root", lambda: tmp_path / "cache" / "onnx")
    return Export(shutil.copytree(export, tmp_path / "changed"))


def test_an_honest_graph_is_looked_at_once(changed, monkeypatch):
    found = changed.run()
    (passed,) = (checked.root().with_name("onnx-checked")).iterdir()
    monkeypatch.setattr(checked.CheckedSession, "_check", None)
    assert np.array_equal(changed.run(), found)
    passed.unlink()
    with pytest.raises(CheckpointError, match="not callable"):
        changed.run()


def test_ones_own_export_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(checked.CheckedSession, "_check", None)
    folder = zoo.export(build("bert-base-uncased", tmp_path / "checkpoint"), tmp_path / "export")
    assert zoo.load_model(folder, device="onnx")(IDS).shape[0] == 2


def _operator(one: Export) -> None:
    one.replace_logits(helper.make_node("Erfinv", ["scale"], ["fake"], domain="strange"), scale=np.float32(0))


def _loop(one: Export) -> None:
    make = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["again"], ["goes_on"]), helper.make_node("Identity", ["x"], ["y"])],
        "body",
        [make("i", TensorProto.INT64, []), make("again", TensorProto.BOOL, []), make("x", TensorProto.FLOAT, [])],
        [make("goes_on", TensorProto.BOOL, []), make("y", TensorProto.FLOAT, [])],
    )
    loop = helper.make_node("Loop", ["trip", "true", "zero"], ["fake"], body=body)
    one.replace_logits(loop, trip=np.int64(2**62), true=np.bool_(True), zero=np.float32(0))


def _function(one: Export) -> None:
    opset = helper.make_opsetid("", 21)
    node = helper.make_node("Add", ["x", "x"], ["y"])
    one.model.functions.append(helper.make_function("own", "f", ["x"], ["y"], [node], [opset]))


def _memory(one: Export) -> None:
    nodes = (
        helper.make_node("Expand", ["zero", "size"], ["big"]),
        helper.make_node("ReduceMax", ["big"], ["fake"], keepdims=0),
    )
    one.replace_logits(*nodes, zero=np.float32(0), size=np.array([3 << 28]))


def _time(one: Export) -> None:
    nodes = [helper.make_node("MatMul", [f"x{i}", f"x{i}"], [f"x{i + 1}"]) for i in range(1000)]
    nodes += [helper.make_node("ReduceMax", ["x1000"], ["fake"], keepdims=0)]
    nodes.insert(0, helper.make_node("Expand", ["zero", "size"], ["x0"]))
    one.replace_logits(*nodes, zero=np.float32(0), size=np.array([1000, 1000]))


def _nan(one: Export) -> None:
    one.replace_logits(helper.make_node("Identity", ["nan"], ["fake"]), nan=np.float32("nan"))


def _other_file(one: Export) -> None:
    tensor = TensorProto(name="secret", dims=[1], data_type=1, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "/proc/self/environ", "offset": "0", "length": "4"}.items():
        tensor.external_data.add(key=key, value=value)
    one.model.graph.initializer.append(tensor)


def _input(one: Export) -> None:
    one.model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [3]))


HOSTILE = {
    "an unknown operator": (_operator, r"it has the operator strange\.Erfinv, which zoo does not write"),
    "a loop": (_loop, "it has the operator Loop"),
    "a function": (_function, "it has functions"),
    "memory": (_memory, "memory|alloc|died"),
    "time": (_time, "takes too long"),
    "NaN": (_nan, r"its output logits has values that are not numbers \(NaN\)"),
    "another file": (_other_file, "the constant 'secret' is in '/proc/self/environ'"),
    "another input": (_input, "its inputs are"),
}


@pytest.mark.parametrize(("change", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_graphs(change, message, changed, monkeypatch):
    monkeypatch.setattr(checked, "JOB", checked.JOB._replace(seconds=1))
    change(changed)
    with pytest.raises(CheckpointError, match=message) as found:
        changed.run()
    assert "model.onnx" in str(found.value)


SIGNATURES: dict[str, dict[str, Any]] = {
    "a path": {"path": "__class__.__mro__"},
    "a record": {"record": 7},
    "a type": {"dtype": "object"},
    "a length": {"dims": ["B", 2**40]},
    "a dimension": {"dims": ["B", "T", "Q"]},
    "a name": {"name": 5},
    "a field": {"more": 1},
    "a fill": {"fill": 1 << 70},
}


@pytest.mark.parametrize("change", SIGNATURES.values(), ids=SIGNATURES)
def test_hostile_signatures(change, changed):
    changed.signature["inputs"][0].update(change)
    with pytest.raises(zoo.ZooError, match=r"model\.onnx\.index\.json|the graph has no input"):
        changed.run()


@pytest.mark.parametrize(
    "guard", ["T // 0 <= 3", "Q <= 3", "T <= ", "T\0", "__import__('os')", "(" * 3000 + "T" + ")" * 3000, "-" * 9999, 5]
)
def test_hostile_guards(guard, changed):
    changed.signature["guards"] = [guard]
    with pytest.raises(CheckpointError, match=r"BertForMaskedLM\.forward"):
        changed.run()


def test_a_long_expression_is_none():
    with pytest.raises(ValueError, match="not an expression of lengths"):
        evaluate("*".join(["9" * 4000] * 3000), {"T": 1})
