"""Models on torch, and a runner: of real graphs where there is a GPU."""

from __future__ import annotations

from typing import Any

import pytest

import zoo


@pytest.fixture
def runner(monkeypatch):
    import torch

    from tests.runner.tape import TapeRecorder
    from zoo.engines.cuda_graphs.recording import CudaRecorder
    from zoo.engines.cuda_graphs.runner import GraphRunner
    from zoo.ops import on_torch
    from zoo.ops.on_torch import vision

    if torch.cuda.is_available():
        return GraphRunner(CudaRecorder("cuda"))
    for module in (on_torch, vision):  # what is looked at on a CPU alone
        monkeypatch.setattr(module, "on_host", lambda x: False)
    return GraphRunner(TapeRecorder())


@pytest.fixture(autouse=True)
def _one_thread():
    """The tensors are small."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def device():
    import torch

    return "cuda" if torch.cuda.is_available() else "torch:cpu"


@pytest.fixture(scope="session")
def model(tmp_path_factory, device):
    """`model(spec)`: a random checkpoint's."""
    pytest.importorskip("transformers", reason="needs the package parity, which is installed with transformers")
    from parity.checkpoints import build

    made: dict[str, Any] = {}

    def load(name: str) -> Any:
        if name not in made:
            folder = build(name, tmp_path_factory.mktemp("model") / name, "tiny")
            made[name] = zoo.load_model(folder, device=device, dtype="float32")
        return made[name]

    return load


@pytest.fixture(scope="session")
def stories(device):
    return zoo.load("stories260k", device=device)
