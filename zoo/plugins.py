"""Three tables of modules outside of the core: engines, file formats and commands.

The core imports nothing of `zoo.engines` and `zoo.apps`: it gets their modules here, by name, and they are imported
then.  A package that adds an engine, a format or a command adds a row to a table.
"""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

# Name -> the module that runs models, or some of their ops, in another way.
ENGINES: dict[str, str] = {
    # A device: `check(device)`, `attach(model, device, files, weights)`, and QUANTISES, values of `weights=` that the
    # engine applies itself.
    "onnx": "zoo.engines.onnx.runner",
    # `usable(tensor, ...)`, and the kernels as modules: "triton.attention".
    "triton": "zoo.engines.triton",
    # `runner_for(tensor)`: the runner of models on that tensor's GPU.
    "cuda-graphs": "zoo.engines.cuda_graphs",
}
# Engines that a user names as a device: "onnx", "onnx:cuda".
DEVICES: tuple[str, ...] = ("onnx",)

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
        "example",
        "grits",
        "demo",
        "serve",
    )
}


@cache
def engine(name: str) -> ModuleType:
    """An engine's module, or one inside of it: "onnx", "triton.attention"."""
    package, dot, inside = name.partition(".")
    return importlib.import_module(ENGINES[package] + dot + inside)


def weight_format(index: str) -> ModuleType:
    """The module that reads the weights which an index of this name leads to."""
    return importlib.import_module(FORMATS[index])


def command(name: str) -> ModuleType:
    """The module of a command."""
    return importlib.import_module(COMMANDS[name])
