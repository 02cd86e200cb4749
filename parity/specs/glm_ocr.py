"""GLM-OCR checkpoints: in the layout of the Hub, and the bare model without biases in its encoder."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .common import Spec
from .qwen2_vl import TINY_TEXT, TINY_TOKENS, QwenVLSpec


@dataclass(frozen=True, kw_only=True)
class GlmOcrSpec(QwenVLSpec):
    def file_name(self, name: str) -> str:
        return name

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Of the layer that predicts further tokens."""
        if self.like != "save_pretrained":
            yield "model.language_model.layers.16.enorm.weight", np.ones(config["text_config"]["hidden_size"], "f4")


_MROPE = {"rope_type": "default", "mrope_section": [16, 24, 24], "partial_rotary_factor": 1.0, "rope_theta": 10000}
_VISION = {"model_type": "glm_ocr_vision", "depth": 24, "hidden_size": 1024, "intermediate_size": 4096}
_VISION |= {"num_heads": 16, "in_channels": 3, "image_size": 336, "patch_size": 14, "out_hidden_size": 1536}
_VISION |= {"attention_bias": True, "rms_norm_eps": 1e-5, "spatial_merge_size": 2, "temporal_patch_size": 2}
_TEXT = {"model_type": "glm_ocr_text", "vocab_size": 59392, "hidden_size": 1536, "intermediate_size": 4608}
_TEXT |= {"num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128}
_TEXT |= {"max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_parameters": _MROPE, "hidden_act": "silu"}
_TEXT |= {"num_nextn_predict_layers": 1, "pad_token_id": 59246, "eos_token_id": [59246, 59253]}
_CONFIG: dict[str, Any] = {"text_config": _TEXT, "vision_config": _VISION, "image_token_id": 59280}
_CONFIG |= {"video_token_id": 59281, "image_start_token_id": 59256, "image_end_token_id": 59257}
_CONFIG |= {"tie_word_embeddings": False}
_TINY_VISION = {**_VISION, "depth": 3, "hidden_size": 48, "intermediate_size": 70, "num_heads": 4, "patch_size": 4}
_TINY_VISION |= {"out_hidden_size": 64}
_TINY_ROPE = {**_MROPE, "mrope_section": [2, 3, 3]}
_TINY_TEXT = {**_TEXT, **TINY_TEXT, "head_dim": 16, "pad_token_id": 2, "rope_scaling": None}
_TINY_TEXT |= {"rope_parameters": _TINY_ROPE}
_TINY = {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "image_token_id": TINY_TOKENS["image_token_id"]}
_TINY |= {"video_token_id": 491, "image_start_token_id": 492, "image_end_token_id": 493}
_PART_OF_ROPE = {"partial_rotary_factor": 0.5, "mrope_section": [1, 1, 2]}
_IMAGES = {"image_processor_type": "Glm46VImageProcessor", "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}
_IMAGES |= {"size": {"shortest_edge": 12544, "longest_edge": 9633792}, "do_rescale": True}
_IMAGES |= {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}

_glm_ocr = partial(GlmOcrSpec, model_type="glm_ocr", config=_CONFIG, tiny=_TINY, processor=_IMAGES)

SPECS: dict[str, Spec] = {
    "GLM-OCR": _glm_ocr(like="zai-org/GLM-OCR", architecture="GlmOcrForConditionalGeneration", dtype="BF16", full=True),
    "GLM-OCR-bare": _glm_ocr(
        like="save_pretrained",
        architecture="GlmOcrModel",
        tiny={
            **_TINY,
            "text_config": {**_TINY_TEXT, "rope_parameters": {**_TINY_ROPE, **_PART_OF_ROPE}},
            "vision_config": {**_TINY_VISION, "attention_bias": False},
        },
    ),
}
