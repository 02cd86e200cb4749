"""Tables of modules outside of the core: engines, file formats and commands, and what the core asks of an engine.

The core imports nothing of `zoo.engines` and `zoo.apps`: it gets their modules here, by name, and they are imported
then.  A package that adds an engine, a format or a command adds a row to a table.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast, runtime_checkable

from .errors import UnsupportedError


@runtime_checkable
class DeviceEngine(Protocol):
    """A module that runs models on a device of its own, which a user names: "onnx", "onnx:cuda", "openvino"."""

    QUANTISES: Sequence[str]  # values of `weights=` that the engine applies itself

    def check(self, device: str, dtype: str | None = None) -> object:
        """Raise UnsupportedError for a device or a dtype that this machine does not have."""
        ...

    def attach(self, model: Any, device: str, files: Iterable[Path], weights: str | None, dtype: str | None) -> None:
        """Let the engine run a model and the models inside it; dtype: of its products, None for float32."""
        ...


@runtime_checkable
class GPURunners(Protocol):
    """A module that runs models whose arrays are on a GPU."""

    def runner_for(self, like: Any) -> Any:
        """The runner of models whose arrays are beside the tensor `like`."""
        ...


@runtime_checkable
class Kernels(Protocol):
    """A package of kernels, of which each file is a module of its own."""

    def usable(self, x: Any, *others: Any) -> bool:
        """True if the kernels take these tensors."""
        ...


# Device that a user names -> the DeviceEngine.
DEVICES: dict[str, str] = {"onnx": "zoo.engines.onnx.runner", "openvino": "zoo.engines.openvino.runner"}
GPU_RUNNERS = "zoo.engines.cuda_graphs"
KERNELS = "zoo.engines.triton"

# Name of a weight index -> the module whose `open_index(path, files)` gives its tensors as a Source.
FORMATS: dict[str, str] = {"model.onnx.index.json": "zoo.engines.onnx.exported"}

# Name of a command of `zoo` -> the module with a function of that name, which takes the parsed arguments.
COMMANDS: dict[str, str] = {
    name: f"zoo.apps.cli.{name}"
    for name in (
        "run",
        "embed",
        "map",
        "chat",
        "info",
        "families",
        "doctor",
        "bench",
        "lock",
        "export",
        "finetune",
        "table",
        "ocr",
        "read",
        "example",
        "grits",
        "demo",
        "serve",
    )
}


@cache
def device_engine(name: str) -> DeviceEngine:
    """The engine of a device."""
    return cast(DeviceEngine, importlib.import_module(DEVICES[name]))


def gpu_runners() -> GPURunners:
    """What runs models on a GPU."""
    return cast(GPURunners, importlib.import_module(GPU_RUNNERS))


@cache
def kernels(name: str = "") -> Any:
    """The package of kernels, or one of its files: "attention"."""
    return importlib.import_module(f"{KERNELS}.{name}" if name else KERNELS)


def weight_format(index: str) -> ModuleType:
    """The module that reads the weights which an index of this name leads to."""
    return importlib.import_module(FORMATS[index])


# The package of `zoo parity`: in a wheel, and in a clone, where it lies beside `zoo`.
PARITY = ("zoo.parity", "parity")


def parity() -> ModuleType:
    """The module whose `main` is `zoo parity`; UnsupportedError if the installation has none."""
    name = next((one for one in PARITY if find_spec(one)), None)
    if name is None:
        raise UnsupportedError("zoo parity comes with zoo's wheel and its source, and neither is here")
    return importlib.import_module(f"{name}.__main__")


def command(name: str) -> ModuleType:
    """The module of a command."""
    return importlib.import_module(COMMANDS[name])
