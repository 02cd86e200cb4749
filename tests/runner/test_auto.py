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
    assert devices.resolve_device("auto") == "cuda"
    machine("onnx", "onnxruntime", "torch")
    assert devices.resolve_device("auto") == "onnx"
    assert devices.resolve_device("auto", "float64") is None
    machine("onnxruntime")
    assert devices.resolve_device("auto") is None


def test_the_environment_decides_for_auto_alone(machine, monkeypatch):
    machine("onnx", "onnxruntime")
    monkeypatch.setenv("ZOO_DEVICE", "cpu")
    assert devices.resolve_device("auto") == "cpu"
    monkeypatch.setenv("ZOO_DEVICE", "onnx")
    assert devices.resolve_device(None) is None
    monkeypatch.setenv("ZOO_DEVICE", "gpu")
    with pytest.raises(UnsupportedError, match="'gpu'"):
        zoo.load("stories260k", device="auto")


def test_a_task_is_loaded(machine):
    machine()
    assert zoo.load("stories260k", device="auto")("Once", max_new_tokens=2, do_sample=False)


def test_16_bit_weights_stay_as_they_are(machine, tmp_path):
    """Widened to float32, as ONNX Runtime computes, they would take twice the memory of their file, and more."""
    import zoo.runner
    from zoo.models.llama3 import LlamaForCausalLM

    model = zoo.load_model("stories260k")
    zoo.save(model, tmp_path, dtype="bfloat16")
    machine("onnx", "onnxruntime")
    for folder, weights, engine in ((tmp_path, None, False), (tmp_path, "int8", True), ("stories260k", None, True)):
        found = LlamaForCausalLM.from_pretrained(folder, device="auto", weights=weights)
        assert (type(found.runner) is not zoo.runner.Runner) == engine


def test_commands_say_what_they_run_on(machine, capsys):
    from argparse import Namespace

    from zoo.apps.cli.fastest import fastest

    machine()
    assert fastest(Namespace(device=None)) == "auto"
    assert capsys.readouterr().err.startswith("zoo: on NumPy (pip install ")
    machine("onnx", "onnxruntime")
    assert fastest(Namespace(device="auto", dtype="float32")) == "auto"
    assert fastest(Namespace(device="torch:cpu")) == "torch:cpu"
    assert capsys.readouterr().err == "zoo: on ONNX Runtime\n"
