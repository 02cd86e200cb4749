"""A graph that was traced, running."""

from __future__ import annotations

import pytest


@pytest.fixture
def running(tmp_path):
    """A function: the graph, written and checked, as a session of ONNX Runtime."""
    onnx = pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")

    def start(traced):
        path = str(tmp_path / f"{len(list(tmp_path.iterdir()))}.onnx")  # weights stay mapped from their file
        traced.save(path)
        onnx.checker.check_model(path, full_check=True)
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # which follows no variable
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    return start


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of traced graphs in this test."""
    monkeypatch.setenv("HF_ASSETS_CACHE", str(tmp_path / "assets"))
    return tmp_path / "assets" / "zoo" / "onnx"


@pytest.fixture
def traces(monkeypatch):
    """The methods that were traced."""
    pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
    from zoo.engines.onnx import runner

    seen, original = [], runner.write_graph

    def noted(traced, folder, method, takes):
        seen.append(method.rpartition(".")[2])
        return original(traced, folder, method, takes)

    monkeypatch.setattr(runner, "write_graph", noted)
    return seen
