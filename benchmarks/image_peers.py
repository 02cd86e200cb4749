"""Those that zoo is compared with on images: models on the same weights, and what prepares a file for them."""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .peers import export, onnx_session, torch_model

# The same images with channels last (B, Y, X, C) and first (B, C, Y, X), as each wants them -> states (B, T, D)
Encoder = Callable[[np.ndarray, np.ndarray], np.ndarray]
Preprocessor = Callable[[bytes], np.ndarray]  # an encoded image -> (1, Y, X, C)


def encoders(folder: Path, threads: int) -> dict[str, Encoder]:
    """zoo, transformers (sdpa) and, for ViT and if it is installed, ONNX Runtime, on one checkpoint."""
    out = {"zoo": _zoo(folder), "transformers": _transformers(folder)}
    is_vit = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"] == "vit"
    if is_vit and importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
        out["onnxruntime"] = _onnxruntime(folder, threads)
    return out


def preprocessors(config: dict[str, Any]) -> dict[str, Preprocessor]:
    """zoo and transformers' Pillow backend, by the content of a preprocessor_config.json."""
    import transformers
    from PIL import Image

    from zoo.images import ImageProcessor

    ours = ImageProcessor.from_dict(config)
    theirs = getattr(transformers, config["image_processor_type"] + "Pil").from_dict(dict(config))

    def prepare(data: bytes) -> np.ndarray:
        image = Image.open(io.BytesIO(data)).convert("RGB")
        return np.moveaxis(theirs(images=image, return_tensors="np")["pixel_values"], 1, -1)

    return {"zoo": lambda data: ours(data).pixel_values, "transformers": prepare}


def _zoo(folder: Path) -> Encoder:
    import zoo

    model: Any = zoo.load_model(folder)
    return lambda last, first: model(last).last_hidden_state


def _transformers(folder: Path) -> Encoder:
    import torch

    model = torch_model(folder)

    def encode(last: np.ndarray, first: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return model(torch.from_numpy(first)).last_hidden_state.numpy()

    return encode


def _onnxruntime(folder: Path, threads: int) -> Encoder:
    session = onnx_session(exported(folder), threads)
    return lambda last, first: np.asarray(session.run(None, {"pixel_values": first})[0])


def exported(folder: Path) -> Path:
    """The checkpoint as an ONNX graph, beside its weights, with a free batch."""
    path = folder / "model.onnx"
    if path.is_file():
        return path
    import torch

    model = torch_model(folder)

    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
            return self.model(pixel_values).last_hidden_state

    size = model.config.image_size
    return export(path, Exported(), {"pixel_values": torch.zeros(2, 3, size, size)}, {0: "B"})
