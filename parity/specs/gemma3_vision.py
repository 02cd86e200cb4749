"""Gemma 3 checkpoints of images and texts: in the layout of the Hub, and with another pattern of windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from .common import Spec

_HUB = {"model.language_model.": "language_model.model.", "lm_head.": "language_model.lm_head."}
_HUB |= {"model.vision_tower.": "vision_tower.vision_model.", "model.multi_modal_projector.": "multi_modal_projector."}


@dataclass(frozen=True, kw_only=True)
class Gemma3VisionSpec(Spec):
    not_compared = ("image_hidden_states",)

    def file_name(self, name: str) -> str:
        if self.like == "save_pretrained":
            return name
        return next((new + name.removeprefix(old) for old, new in _HUB.items() if name.startswith(old)), name)


_VISION = {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "image_size": 896}
_VISION |= {"num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14, "vision_use_head": False}
_TEXT = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
_TEXT |= {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}
_CONFIG: dict[str, Any] = {"text_config": _TEXT, "vision_config": _VISION, "mm_tokens_per_image": 256}
_CONFIG |= {"boi_token_index": 255999, "eoi_token_index": 256000, "image_token_index": 262144}
_CONFIG |= {"eos_token_id": [1, 106]}
_TINY_VISION = {**_VISION, "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 3, "image_size": 64}
_TINY_VISION |= {"num_attention_heads": 4, "patch_size": 8}
# The window is smaller than an image, whose first tokens see its last ones all the same.
_TINY_TEXT = {**_TEXT, "vocab_size": 500, "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4}
_TINY_TEXT |= {"head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512}
_TINY_TEXT |= {"sliding_window": 6, "sliding_window_pattern": 3}
_TINY = {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "mm_tokens_per_image": 16}
_TINY |= {"boi_token_index": 480, "eoi_token_index": 481, "image_token_index": 490}
_IMAGES = {"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 896, "width": 896}, "resample": 2}
_IMAGES |= {"do_pan_and_scan": None, "do_convert_rgb": None, "image_seq_length": 256}
_PANS = {"pan_and_scan_min_crop_size": 20, "pan_and_scan_max_num_crops": 4}
_PANS |= {"pan_and_scan_min_ratio_to_activate": 1.2}

_gemma3 = partial(Gemma3VisionSpec, model_type="gemma3", config=_CONFIG, tiny=_TINY, processor=_IMAGES)

SPECS: dict[str, Spec] = {
    "gemma-3-4b-it": _gemma3(like="google/gemma-3-4b-it", architecture="Gemma3ForConditionalGeneration", dtype="BF16"),
    "gemma-3-4b-untied": _gemma3(
        like="save_pretrained",
        architecture="Gemma3ForConditionalGeneration",
        tiny={**_TINY, "tie_word_embeddings": False, "text_config": {**_TINY_TEXT, "sliding_window": 40}},
        processor={**_IMAGES, "do_pan_and_scan": True, **_PANS},
    ),
    "gemma-3-4b-bare": _gemma3(like="save_pretrained", architecture="Gemma3Model"),
}
