"""Qwen3-VL checkpoints: in the layout of the Hub, and the bare model."""

from __future__ import annotations

from functools import partial
from typing import Any

from .common import Spec
from .qwen2_vl import TINY_TEXT, TINY_TOKENS, TOKENS, QwenVLSpec


class Qwen3VLSpec(QwenVLSpec):
    def file_name(self, name: str) -> str:
        return name


_MROPE = {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [24, 20, 20]}
_VISION = {"model_type": "qwen3_vl", "depth": 24, "hidden_size": 1024, "hidden_act": "gelu_pytorch_tanh"}
_VISION |= {"intermediate_size": 4096, "num_heads": 16, "in_channels": 3, "out_hidden_size": 2048}
_VISION |= {"num_position_embeddings": 2304, "deepstack_visual_indexes": [5, 11, 17], "patch_size": 16}
_VISION |= {"spatial_merge_size": 2, "temporal_patch_size": 2}
_TEXT = {"model_type": "qwen3_vl_text", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28}
_TEXT |= {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936}
_TEXT |= {"rms_norm_eps": 1e-6, "rope_theta": 5000000, "rope_scaling": _MROPE, "attention_bias": False}
_TEXT |= {"max_position_embeddings": 262144, "tie_word_embeddings": True}
_TEXT |= {"bos_token_id": 151643, "eos_token_id": 151645}
_CONFIG: dict[str, Any] = {"vision_config": _VISION, "text_config": _TEXT, "tie_word_embeddings": True}
_CONFIG |= {name: token for name, token in TOKENS.items() if name not in _TEXT}
_TINY_VISION = {**_VISION, "depth": 4, "hidden_size": 48, "intermediate_size": 70, "num_heads": 4, "patch_size": 4}
_TINY_VISION |= {"out_hidden_size": 64, "num_position_embeddings": 36, "deepstack_visual_indexes": [0, 2]}
_TINY_TEXT = {**_TEXT, **TINY_TEXT, "head_dim": 16, "rope_scaling": {**_MROPE, "mrope_section": [4, 2, 2]}}
_TINY = {"vision_config": _TINY_VISION, "text_config": _TINY_TEXT, **TINY_TOKENS}
_IMAGES = {"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "temporal_patch_size": 2}
_IMAGES |= {"size": {"longest_edge": 16777216, "shortest_edge": 65536}, "merge_size": 2}
_IMAGES |= {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}

_qwen3_vl = partial(Qwen3VLSpec, model_type="qwen3_vl", config=_CONFIG, tiny=_TINY, processor=_IMAGES)

SPECS: dict[str, Spec] = {
    "Qwen3-VL-2B-Instruct": _qwen3_vl(
        like="Qwen/Qwen3-VL-2B-Instruct", architecture="Qwen3VLForConditionalGeneration", dtype="BF16", full=True
    ),
    "Qwen3-VL-bare": _qwen3_vl(
        like="save_pretrained",
        architecture="Qwen3VLModel",
        tiny={**_TINY, "text_config": {**_TINY_TEXT, "attention_bias": True}},
    ),
}
