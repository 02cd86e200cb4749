"""Idefics3 and SmolVLM checkpoints: Granite Docling's layout, untied heads, and the bare model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec


@dataclass(frozen=True, kw_only=True)
class TiledSpec(Spec):
    not_compared = ("image_hidden_states",)

    def processor_of(self, config: Mapping[str, Any]) -> dict[str, Any]:
        found, tile = super().processor_of(config), config["vision_config"]["image_size"]
        return {**found, "max_image_size": {"longest_edge": tile}} if found else {}

    @staticmethod
    def from_processor(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"pixel_values": np.moveaxis(found["pixel_values"][0], 1, -1)}

    @staticmethod
    def arguments(given: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """The tiles of each row, (B, M, C, Y, X), filled up with black ones, which transformers takes out."""
        if "pixel_values" not in given:
            return given
        pixels = given["pixel_values"].permute(0, 3, 1, 2)
        side = pixels.shape[2] // config["vision_config"]["patch_size"] // config["scale_factor"]
        if "input_ids" not in given:
            return {**given, "pixel_values": pixels[None]}
        counts = ((given["input_ids"] == config["image_token_id"]).sum(1) // side**2).tolist()
        rows = pixels.new_zeros(len(counts), max(counts), *pixels.shape[1:])
        for row, tiles in zip(rows, pixels.split(counts), strict=True):
            row[: len(tiles)] = tiles
        return {**given, "pixel_values": rows}


_VISION = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
_VISION |= {"image_size": 512, "patch_size": 16, "num_channels": 3, "hidden_act": "gelu_pytorch_tanh"}
_VISION |= {"layer_norm_eps": 1e-6, "attention_dropout": 0.0, "model_type": "idefics3_vision"}
_TEXT = {"model_type": "llama", "vocab_size": 100352, "hidden_size": 576, "intermediate_size": 1536, "head_dim": 64}
_TEXT |= {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "rms_norm_eps": 1e-5}
_TEXT |= {"rope_theta": 100000.0, "max_position_embeddings": 8192, "tie_word_embeddings": True}
_TEXT |= {"bos_token_id": 100264, "eos_token_id": 100257, "pad_token_id": 100257}
_CONFIG = {"text_config": _TEXT, "vision_config": _VISION, "scale_factor": 4, "image_token_id": 100270}
_CONFIG |= {"tie_word_embeddings": True}
_TINY_VISION = {"hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 2, "num_attention_heads": 4}
_TINY_VISION |= {"image_size": 32, "patch_size": 4}
_TINY_TEXT = {"vocab_size": 500, "hidden_size": 48, "intermediate_size": 72, "num_hidden_layers": 3, "head_dim": 8}
_TINY_TEXT |= {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 2048}
_TINY_TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
_TINY = {"text_config": {**_TEXT, **_TINY_TEXT}, "vision_config": {**_VISION, **_TINY_VISION}, "image_token_id": 490}
_IMAGES = {"image_processor_type": "Idefics3ImageProcessor", "do_resize": True, "size": {"longest_edge": 2048}}
_IMAGES |= {"max_image_size": {"longest_edge": 512}, "do_image_splitting": True, "resample": 1, "do_rescale": True}
_IMAGES |= {"rescale_factor": 0.00392156862745098, "do_normalize": True, "do_pad": True, "do_convert_rgb": True}
_IMAGES |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}

_idefics3 = partial(TiledSpec, model_type="idefics3", config=_CONFIG, tiny=_TINY, processor=_IMAGES)

SPECS: dict[str, Spec] = {
    "granite-docling-258M": _idefics3(
        like="ibm-granite/granite-docling-258M",
        architecture="Idefics3ForConditionalGeneration",
        full=True,
        dtype="BF16",
    ),
    "idefics3-untied": _idefics3(
        like="save_pretrained",
        architecture="Idefics3ForConditionalGeneration",
        config={**_CONFIG, "tie_word_embeddings": False},
        tiny={**_TINY, "tie_word_embeddings": False},
    ),
    "idefics3-bare": _idefics3(like="save_pretrained", architecture="Idefics3Model"),
    "smolvlm-256M": _idefics3(
        like="HuggingFaceTB/SmolVLM-256M-Instruct",
        model_type="smolvlm",
        architecture="SmolVLMForConditionalGeneration",
        config={**_CONFIG, "text_config": {**_TEXT, "vocab_size": 49280}, "image_token_id": 49190},
        processor={**_IMAGES, "image_processor_type": "SmolVLMImageProcessor"},
        full=True,
        dtype="BF16",
    ),
    "smolvlm-bare": _idefics3(
        like="save_pretrained",
        model_type="smolvlm",
        architecture="SmolVLMModel",
        processor={**_IMAGES, "image_processor_type": "SmolVLMImageProcessor"},
    ),
}
