"""device="auto": the first of CUDA, ONNX Runtime and NumPy that a machine has, or ZOO_DEVICE."""

from __future__ import annotations

import pytest

import zoo
from zoo import devices
from zoo.errors import UnsupportedError


@pytest.fixture
def machine(monkeypatch):
    """A function that pretends that a machine has these packages, and a GPU or none."""

    def pretend(*packages: str, cuda: bool = False) -> None:
        monkeypatch.delenv("ZOO_DEVICE", raising=False)
        monkeypatch.setattr(devices, "_is_installed", lambda name: name in packages)
        monkeypatch.setattr(devices, "_has_cuda", lambda: cuda)

    return pretend


def test_the_first_that_there_is(machine):
    machine("onnx", "onnxruntime", "torch", cuda=True)
    assert devices.resolved("auto") == "cuda"
    machine("onnx", "onnxruntime", "torch")
    assert devices.resolved("auto") == "onnx"
    assert devices.resolved("auto", "float64") is None
    machine("onnxruntime")
    assert devices.resolved("auto") is None


def test_the_environment_decides_for_auto_alone(machine, monkeypatch):
    machine("onnx", "onnxruntime")
    monkeypatch.setenv("ZOO_DEVICE", "cpu")
    assert devices.resolved("auto") == "cpu"
    monkeypatch.setenv("ZOO_DEVICE", "onnx")
    assert devices.resolved(None) is None
    monkeypatch.setenv("ZOO_DEVICE", "gpu")
    with pytest.raises(UnsupportedError, match="'gpu'"):
        zoo.load("stories260k", device="auto")


def test_a_task_is_loaded(machine):
    machine()
    assert zoo.load("stories260k", device="auto")("Once", max_new_tokens=2, do_sample=False)
