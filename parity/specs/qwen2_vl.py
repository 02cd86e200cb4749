"""Qwen2-VL checkpoints: in the layout of the Hub, and as transformers saves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pictures import draw
from .common import Spec

if TYPE_CHECKING:
    from PIL import Image

    from zoo.images import ImageProcessor

_HUB = {"model.language_model.": "model.", "model.visual.": "visual."}
TINY_LENGTHS = 4, 24  # the least and the largest number of an image's tokens at tiny size


@dataclass(frozen=True, kw_only=True)
class QwenVLSpec(Spec):
    """transformers takes patches, square by square of those that become one token."""

    def file_name(self, name: str) -> str:
        if self.like == "save_pretrained":
            return name
        return next((new + name.removeprefix(old) for old, new in _HUB.items() if name.startswith(old)), name)

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        patch, merged = config["vision_config"]["patch_size"], config["vision_config"]["spatial_merge_size"]
        if not self.processor or patch == self.config["vision_config"]["patch_size"]:
            return dict(self.processor)
        pixels = (patch * merged) ** 2
        bounds = {"shortest_edge": TINY_LENGTHS[0] * pixels, "longest_edge": TINY_LENGTHS[1] * pixels}
        found = {name: x for name, x in self.processor.items() if name not in ("min_pixels", "max_pixels")}
        return {**found, "patch_size": patch, "size": bounds}

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [draw(300, 420, seed + i) for i in range(3)]  # of one shape, that of no square

    @staticmethod
    def from_processor(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The first of the two equal frames of each image."""
        x, (_, h, w) = found["pixel_values"], found["image_grid_thw"][0]
        edge = int((x.shape[1] / 6) ** 0.5)
        squares = x.reshape(-1, h // 2, w // 2, 2, 2, 3, 2, edge, edge)[:, :, :, :, :, :, 0]
        return {"pixel_values": squares.transpose(0, 1, 3, 6, 2, 4, 7, 5).reshape(-1, h * edge, w * edge, 3)}

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        if "pixel_values" not in given:
            return given
        pixels, vision = given["pixel_values"], config["vision_config"]
        edge, m, times = (vision[name] for name in ("patch_size", "spatial_merge_size", "temporal_patch_size"))
        N, C, (h, w) = len(pixels), pixels.shape[3], (n // edge for n in pixels.shape[1:3])
        squares = pixels.reshape(N, h // m, m, edge, w // m, m, edge, C).permute(0, 1, 4, 2, 5, 7, 3, 6)
        patches = squares[:, :, :, :, :, :, None].expand(-1, -1, -1, -1, -1, -1, times, -1, -1)
        grids = given["input_ids"].new_tensor([[1, h, w]] * N)
        types = (given["input_ids"] == config["image_token_id"]) * 1
        patches = patches.reshape(N * h * w, -1)
        return {**given, "pixel_values": patches, "image_grid_thw": grids, "mm_token_type_ids": types}

    @classmethod
    def from_stages(  # type: ignore[override]
        cls, found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        if "pixel_values" not in arrays:
            return found
        vision, shape = config["vision_config"], arrays["pixel_values"].shape
        N, h, w = shape[0], *(n // vision["patch_size"] for n in shape[1:3])
        of = {"vision_model": cls.patch_order(h, w, vision), "connector": cls.token_order(h, w, vision)}
        return {
            name: x if (order := of.get(name.partition(".")[0])) is None else x.reshape(N, -1, x.shape[-1])[:, order]
            for name, x in found.items()
        }

    @staticmethod
    def token_order(h: int, w: int, vision: Mapping[str, Any]) -> np.ndarray:
        """Where transformers has each token of an image of h x w patches, which zoo has row by row."""
        return np.arange(h * w // vision["spatial_merge_size"] ** 2)

    @classmethod
    def patch_order(cls, h: int, w: int, vision: Mapping[str, Any]) -> np.ndarray:
        """The same of each patch."""
        m = vision["spatial_merge_size"]
        tokens = cls.token_order(h, w, vision).reshape(h // m, 1, w // m, 1)
        inside = np.arange(m * m).reshape(m, 1, m)
        return (tokens * m * m + inside).reshape(-1)


MROPE = {"type": "mrope", "mrope_section": [16, 24, 24]}
TOKENS = {"image_token_id": 151655, "video_token_id": 151656, "vision_start_token_id": 151652}
TOKENS |= {"vision_end_token_id": 151653, "bos_token_id": 151643, "eos_token_id": 151645}
_VISION = {"depth": 32, "embed_dim": 1280, "hidden_size": 1536, "num_heads": 16, "mlp_ratio": 4, "in_chans": 3}
_VISION |= {"patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2}
_TEXT = {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12}
_TEXT |= {"num_key_value_heads": 2, "vocab_size": 151936, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0}
_TEXT |= {"rope_scaling": MROPE, "tie_word_embeddings": True, "max_position_embeddings": 32768}
_TEXT |= {"max_window_layers": 28, "sliding_window": 32768, "use_sliding_window": False, "hidden_act": "silu"}
_CONFIG: dict[str, Any] = {**_TEXT, **TOKENS, "vision_config": _VISION, "vision_token_id": 151654}
_TINY_VISION = {**_VISION, "depth": 3, "embed_dim": 48, "hidden_size": 64, "num_heads": 4, "mlp_ratio": 2}
_TINY_VISION |= {"patch_size": 4}
TINY_TEXT = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3}
TINY_TEXT |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512}
TINY_TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "rope_scaling": {**MROPE, "mrope_section": [2, 3, 3]}}
TINY_TOKENS = {"image_token_id": 490, "video_token_id": 491, "vision_start_token_id": 492}
TINY_TOKENS |= {"vision_end_token_id": 493}
_TINY = {**TINY_TEXT, **TINY_TOKENS, "vision_config": _TINY_VISION, "vision_token_id": 494}
IMAGES = {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136, "max_pixels": 12845056}
IMAGES |= {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}
IMAGES |= {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}

_qwen2_vl = partial(QwenVLSpec, model_type="qwen2_vl", config=_CONFIG, tiny=_TINY, processor=IMAGES)

SPECS: dict[str, Spec] = {
    "Qwen2-VL-2B-Instruct": _qwen2_vl(
        like="Qwen/Qwen2-VL-2B-Instruct", architecture="Qwen2VLForConditionalGeneration", dtype="BF16", full=True
    ),
    "Qwen2-VL-bare": _qwen2_vl(
        like="save_pretrained",
        architecture="Qwen2VLModel",
        config={"vision_config": _VISION, "text_config": _TEXT, "image_token_id": 151655},
        tiny={"vision_config": _TINY_VISION, "text_config": TINY_TEXT, "image_token_id": 490},
    ),
}
