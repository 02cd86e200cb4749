"""zoo and transformers on images of tables: whole detectors, and the backbones that they look through."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from parity.reference import Reference
from parity.specs import SPECS

from .peers import export

SPEC = "table-transformer-structure-recognition-v1.1-all"

# The same images with channels last (B, Y, X, C) and first (B, C, Y, X) -> an output
Detector = Callable[[np.ndarray, np.ndarray], np.ndarray]


def exported(folder: Path, height: int, width: int) -> Path:
    """The checkpoint as an ONNX graph, beside its weights, for one image of this size: torch.onnx fixes it."""
    path = folder / f"model-{height}x{width}.onnx"
    if path.is_file():
        return path
    import torch

    model = Reference(folder, SPECS[SPEC].architecture).model
    pixels = {"pixel_values": torch.zeros(1, 3, height, width)}
    return export(path, lambda pixels: model(pixels).logits, model, pixels, {})


def detectors(folder: Path) -> dict[str, dict[str, Detector]]:
    """zoo and transformers: the logits of a whole model, and the features of its backbone (channels last).

    transformers computes this model's attention in one way: there is no sdpa to compare with.
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
