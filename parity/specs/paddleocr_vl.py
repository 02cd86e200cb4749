"""PaddleOCR-VL checkpoints: in the layout of the Hub, and the bare model with larger squares of patches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec
from .qwen2_vl import TINY_TOKENS, QwenVLSpec

_HUB = {"model.language_model.": "model.", "model.visual.": "visual.", "model.projector.": "mlp_AR."}
_UNREAD_NAME = "visual.vision_model.embeddings.packing_position_embedding.weight"


@dataclass(frozen=True, kw_only=True)
class PaddleOCRVLSpec(QwenVLSpec):
    """transformers takes the patches of all images as one row, row by row of each."""

    def file_name(self, name: str) -> str:
        if self.like == "save_pretrained":
            return name
        return next((new + name.removeprefix(old) for old, new in _HUB.items() if name.startswith(old)), name)

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        if self.like != "save_pretrained":
            width = config["vision_config"]["hidden_size"]
            yield _UNREAD_NAME, np.ones((9, width), np.float32)

    @staticmethod
    def from_processor(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        x, (_, h, w) = found["pixel_values"], found["image_grid_thw"][0]
        patches = x.reshape(-1, h, w, *x.shape[1:]).transpose(0, 1, 4, 2, 5, 3)
        return {"pixel_values": patches.reshape(-1, h * x.shape[2], w * x.shape[3], x.shape[1])}

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        if "pixel_values" not in given:
            return given
        pixels, edge = given["pixel_values"], config["vision_config"]["patch_size"]
        N, C, (h, w) = len(pixels), pixels.shape[3], (n // edge for n in pixels.shape[1:3])
        patches = pixels.reshape(N, h, edge, w, edge, C).permute(0, 1, 3, 5, 2, 4)
        grids = given["input_ids"].new_tensor([[1, h, w]] * N)
        types = (given["input_ids"] == config["image_token_id"]) * 1
        patches = patches.reshape(N * h * w, C, edge, edge)
        return {**given, "pixel_values": patches, "image_grid_thw": grids, "mm_token_type_ids": types}

    @classmethod
    def patch_order(cls, h: int, w: int, vision: Mapping[str, Any]) -> np.ndarray:
        return np.arange(h * w)


_TOKENS = {"image_token_id": 100295, "video_token_id": 101307, "vision_start_token_id": 101305}
_MROPE = {"rope_type": "default", "type": "default", "mrope_section": [16, 24, 24]}
_VISION = {"model_type": "paddleocr_vl", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27}
_VISION |= {"num_attention_heads": 16, "image_size": 384, "patch_size": 14, "spatial_merge_size": 2, "num_channels": 3}
_VISION |= {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6, "temporal_patch_size": 2}
_TEXT = {"vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18}
_TEXT |= {"num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 131072}
_TEXT |= {"rms_norm_eps": 1e-5, "rope_theta": 500000, "rope_scaling": _MROPE, "use_bias": False, "hidden_act": "silu"}
_CONFIG: dict[str, Any] = {**_TEXT, **_TOKENS, "vision_config": _VISION, "tie_word_embeddings": False}
_TINY_VISION = {**_VISION, "hidden_size": 48, "intermediate_size": 70, "num_hidden_layers": 3, "num_attention_heads": 4}
_TINY_VISION |= {"image_size": 24, "patch_size": 4}
_TINY_TEXT = {**_TEXT, "vocab_size": 500, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3}
_TINY_TEXT |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512}
_TINY_TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "rope_scaling": {**_MROPE, "mrope_section": [2, 3, 3]}}
_TINY = {**_TINY_TEXT, **TINY_TOKENS, "vision_config": _TINY_VISION}
_IMAGES = {"image_processor_type": "PaddleOCRVLImageProcessor", "min_pixels": 147384, "max_pixels": 2822400}
_IMAGES |= {"patch_size": 14, "temporal_patch_size": 1, "merge_size": 2, "resample": 3, "do_convert_rgb": True}
_IMAGES |= {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}

_paddleocr_vl = partial(PaddleOCRVLSpec, model_type="paddleocr_vl", config=_CONFIG, tiny=_TINY, processor=_IMAGES)

SPECS: dict[str, Spec] = {
    "PaddleOCR-VL": _paddleocr_vl(
        like="PaddlePaddle/PaddleOCR-VL",
        architecture="PaddleOCRVLForConditionalGeneration",
        dtype="BF16",
        full=True,
    ),
    "PaddleOCR-VL-bare": _paddleocr_vl(
        like="save_pretrained",
        architecture="PaddleOCRVLModel",
        processor={**_IMAGES, "merge_size": 3},
        config={"vision_config": _VISION, "text_config": _TEXT, "image_token_id": 100295},
        tiny={
            "vision_config": {**_TINY_VISION, "model_type": "paddleocr_vl_vision", "spatial_merge_size": 3},
            "text_config": {**_TINY_TEXT, "use_bias": True},
            "image_token_id": 490,
        },
    ),
}
