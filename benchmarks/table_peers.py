"""Those that zoo is compared with on images of tables: whole detectors, and the backbones that they look through."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from parity.checkpoints import build
from parity.reference import Reference
from parity.specs import SPECS, Size

from .peers import export

SPEC = "table-transformer-structure-recognition-v1.1-all"

# The same images with channels last (B, Y, X, C) and first (B, C, Y, X), as each wants them -> an output
Detector = Callable[[np.ndarray, np.ndarray], np.ndarray]


def checkpoint(cache: Path, size: Size) -> Path:
    """A folder with a random checkpoint of structure recognition, written on first use."""
    folder = cache / f"{SPEC}-{size}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".part-", dir=cache))
    try:
        os.replace(build(SPEC, partial, size), folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def exported(folder: Path, height: int, width: int) -> Path:
    """The checkpoint as an ONNX graph, beside its weights, for one image of this size: torch.onnx fixes it."""
    path = folder / f"model-{height}x{width}.onnx"
    if path.is_file():
        return path
    import torch

    theirs = Reference(folder, SPECS[SPEC].architecture).model

    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = theirs

        def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
            return self.model(pixel_values).logits

    return export(path, Exported(), {"pixel_values": torch.zeros(1, 3, height, width)}, {})


def detectors(folder: Path) -> dict[str, dict[str, Detector]]:
    """Of a whole model (its logits) and of its backbone (features, channels last): zoo and transformers.

    transformers has one way to compute this model's attention, so that there is no sdpa to compare with.
    """
    import torch

    import zoo

    ours: Any = zoo.load_model(folder)
    theirs = Reference(folder, SPECS[SPEC].architecture).model

    def whole(last: np.ndarray, first: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return theirs(torch.from_numpy(first)).logits.numpy()

    def backbone(last: np.ndarray, first: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            maps = theirs.model.backbone.conv_encoder.model(torch.from_numpy(first)).feature_maps
        return maps[-1].movedim(1, -1).numpy()

    return {
        "": {"zoo": lambda last, first: ours(last).logits, "transformers": whole},
        ", its backbone": {"zoo": lambda last, first: ours.model.backbone(last), "transformers": backbone},
    }
