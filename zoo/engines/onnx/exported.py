"""A folder of ONNX graphs, which `zoo export` wrote, as a Source: its tensors have shapes, and their numbers are in the
graphs.  What is made of them knows what a model knows of itself, and computes nothing.
"""

from __future__ import annotations

from collections.abc import KeysView
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CheckpointError, MissingWeightError, nearest
from ...files.json_file import read_json
from ...typing import RawTensor
from ...weights.mapped import check_shape

INDEX = "model.onnx.index.json"  # whose weight_map names the other files, as that of any index
VERSION = 1
MAX_BYTES = 64 << 20


class ExportedGraphs:
    """Tensors without numbers: all are zero, and take no memory."""

    device = "onnx"

    def __init__(self, path: Path, files: list[Path]):
        """path: of the index; files: all that it names."""
        self.path, self.files = path, [path, *files]
        self.about = about_export(path)
        self._shapes: dict[str, tuple[int, ...]] = {}
        tensors = self.about.get("tensors")
        for name, shape in (tensors if isinstance(tensors, dict) else {"": None}).items():
            if not isinstance(shape, list) or check_shape(tuple(shape), 32):
                raise CheckpointError(f"{path}: {name[:200]!r} has no shape, a list of whole numbers was wanted")
            self._shapes[name] = tuple(shape)

    def names(self) -> KeysView[str]:
        return self._shapes.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._shapes

    def shape(self, name: str) -> tuple[int, ...]:
        if name not in self._shapes:
            raise MissingWeightError(f"{self.path} has no {name}{nearest(name, self._shapes)}")
        return self._shapes[name]

    def dtype(self, name: str) -> str:
        return "F32"

    def read(self, name: str) -> RawTensor:
        return RawTensor(np.broadcast_to(np.float32(0), self.shape(name)), "F32")


def open_index(path: Path, files: list[Path]) -> ExportedGraphs:
    """The tensors that an export's index names; files: the graphs and their data."""
    return ExportedGraphs(path, files)


def about_export(path: Path) -> dict[str, Any]:
    """What the index of an export says; CheckpointError where it is not one, or of another version of the form."""
    about = read_json(path, MAX_BYTES, CheckpointError).get("metadata")
    if not isinstance(about, dict) or about.get("format") != "zoo":
        raise CheckpointError(f"{path}: not the index of a folder that `zoo export` wrote")
    if about.get("version") != VERSION:
        raise CheckpointError(f"{path}: version {about.get('version')!r}, expected {VERSION}: export the model anew")
    return about
