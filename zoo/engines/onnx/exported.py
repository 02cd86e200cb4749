"""A folder that `zoo export` wrote, as a Source: its tensors have shapes, and their values are inside the graphs.

A model built from it has a config and shapes, and only its graphs can compute.
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

INDEX = "model.onnx.index.json"  # its weight_map names the other files, as in any index
VERSION = 1
MAX_BYTES = 64 << 20


class ExportedGraphs:
    """Tensors without values: all read as zero, and take no memory."""

    device = "onnx"

    def __init__(self, path: Path, files: list[Path]):
        """path: the index.  files: all files that it names."""
        self.path, self.files = path, [path, *files]
        self.about = about_export(path)
        self._shapes: dict[str, tuple[int, ...]] = {}
        tensors = self.about.get("tensors")
        for name, shape in (tensors if isinstance(tensors, dict) else {"": None}).items():
            if not isinstance(shape, list) or check_shape(tuple(shape), 32):
                raise CheckpointError(f"{path}: {name[:200]!r} has no shape, expected a list of whole numbers")
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


open_index = ExportedGraphs  # the name that `zoo.plugins` calls a format's reader by


def about_export(path: Path) -> dict[str, Any]:
    """The metadata in an export's index.  CheckpointError: it is no such index, or of another version."""
    about = read_json(path, MAX_BYTES, CheckpointError).get("metadata")
    if not isinstance(about, dict) or about.get("format") != "zoo":
        raise CheckpointError(f"{path}: not the index of a folder that `zoo export` wrote")
    if about.get("version") != VERSION:
        raise CheckpointError(f"{path}: version {about.get('version')!r}, expected {VERSION}: export the model again")
    return about
