"""LightOnOCR checkpoints: in the layout of the Hub, and the bare model with larger squares of patches."""

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


@dataclass(frozen=True, kw_only=True)
class LightOnOcrSpec(Spec):
    """transformers takes the patches of all images as one row."""

    not_compared = ("image_hidden_states",)

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        patch = config["vision_config"]["patch_size"]
        return {**super().processor_of(config), "patch_size": patch} if self.processor else {}

    @staticmethod
    def pictures(config: Any, processor: ImageProcessor, seed: int) -> Sequence[Image.Image]:
        return [draw(300, 420, seed + i) for i in range(3)]  # of one shape, that of no square

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        found = Spec.arguments(given, config)
        if "pixel_values" not in found:
            return found
        sizes = found["input_ids"].new_tensor([list(found["pixel_values"].shape[2:])] * len(found["pixel_values"]))
        return {**found, "image_sizes": sizes}

    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        parts = ("vision_model", "connector")
        count = len(arrays.get("pixel_values", ()))
        return {
            name: x.reshape(count, -1, x.shape[-1]) if name.partition(".")[0] in parts else x
            for name, x in found.items()
        }


_VISION = {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "image_size": 1540, "head_dim": 64}
_VISION |= {"num_hidden_layers": 24, "num_attention_heads": 16, "patch_size": 14, "hidden_act": "silu"}
_VISION |= {"rope_theta": 10000.0, "num_channels": 3}
_TEXT = {"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072}
_TEXT |= {"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "rope_theta": 1000000}
_TEXT |= {"head_dim": 128, "max_position_embeddings": 40960, "sliding_window": None, "eos_token_id": 151645}
_CONFIG: dict[str, Any] = {"text_config": _TEXT, "vision_config": _VISION, "image_token_id": 151655}
_CONFIG |= {"spatial_merge_size": 2}
_TINY_VISION = {**_VISION, "hidden_size": 48, "intermediate_size": 72, "image_size": 40, "num_hidden_layers": 3}
_TINY_VISION |= {"num_attention_heads": 4, "head_dim": 12, "patch_size": 4}
_TINY_TEXT = {**_TEXT, "vocab_size": 500, "hidden_size": 56, "intermediate_size": 72, "num_hidden_layers": 3}
_TINY_TEXT |= {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512}
_TINY_TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
_TINY = {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "image_token_id": 490}
IMAGES = {"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 1540}, "patch_size": 14}
IMAGES |= {"resample": 3, "do_convert_rgb": True}
IMAGES |= {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}

_lighton_ocr = partial(LightOnOcrSpec, model_type="lighton_ocr", config=_CONFIG, tiny=_TINY, processor=IMAGES)

SPECS: dict[str, Spec] = {
    "LightOnOCR-1B-1025": _lighton_ocr(
        like="lightonai/LightOnOCR-1B-1025", architecture="LightOnOcrForConditionalGeneration", dtype="BF16", full=True
    ),
    "LightOnOCR-bare": _lighton_ocr(
        like="save_pretrained", architecture="LightOnOcrModel", tiny={**_TINY, "spatial_merge_size": 3}
    ),
}
