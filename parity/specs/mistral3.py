"""Mistral 3 checkpoints: a Mistral or a Ministral 3 with images, in the layouts of the Hub, and the bare model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from .lighton_ocr import IMAGES, LightOnOcrSpec
from .like_llama import TINY_YARN, YARN

_HUB = {"model.language_model.": "language_model.model.", "lm_head.": "language_model.lm_head."}
_HUB |= {"model.vision_tower.": "vision_tower.", "model.multi_modal_projector.": "multi_modal_projector."}


@dataclass(frozen=True, kw_only=True)
class Mistral3Spec(LightOnOcrSpec):
    def file_name(self, name: str) -> str:
        if self.like == "save_pretrained":
            return name
        return next((new + name.removeprefix(old) for old, new in _HUB.items() if name.startswith(old)), name)


_VISION = {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "image_size": 1540, "head_dim": 64}
_VISION |= {"num_hidden_layers": 24, "num_attention_heads": 16, "patch_size": 14, "hidden_act": "silu"}
_VISION |= {"rope_theta": 10000.0, "num_channels": 3}
_TEXT = {"model_type": "mistral", "vocab_size": 131072, "hidden_size": 5120, "intermediate_size": 32768}
_TEXT |= {"num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
_TEXT |= {"rms_norm_eps": 1e-5, "rope_theta": 1000000000.0, "max_position_embeddings": 131072, "sliding_window": None}
_CONFIG: dict[str, Any] = {"text_config": _TEXT, "vision_config": _VISION, "image_token_index": 10}
_CONFIG |= {"spatial_merge_size": 2, "projector_hidden_act": "gelu", "vision_feature_layer": -1}
_CONFIG |= {"multimodal_projector_bias": False, "tie_word_embeddings": False}
_TINY_VISION = {**_VISION, "hidden_size": 48, "intermediate_size": 72, "image_size": 40, "num_hidden_layers": 3}
_TINY_VISION |= {"num_attention_heads": 4, "head_dim": 12, "patch_size": 4}
_TINY_TEXT = {**_TEXT, "vocab_size": 500, "hidden_size": 56, "intermediate_size": 72, "num_hidden_layers": 3}
_TINY_TEXT |= {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512}
_TINY_TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2, "rope_theta": 1000000.0}
_TINY = {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "image_token_index": 490}
_MINISTRAL = {"model_type": "ministral3", "rope_parameters": YARN}
_TEXT_3B = {**_TEXT, **_MINISTRAL, "hidden_size": 3072, "intermediate_size": 9216, "num_hidden_layers": 26}
_TEXT_3B |= {"max_position_embeddings": 262144, "tie_word_embeddings": True}
_TINY_3B = {**_TINY_TEXT, **_MINISTRAL, "rope_parameters": TINY_YARN, "tie_word_embeddings": True}
# With two layers that are not read after the one that is.
EARLIER_LAYER = {"vision_feature_layer": 1, "multimodal_projector_bias": True, "spatial_merge_size": 3}

_mistral3 = partial(Mistral3Spec, model_type="mistral3", config=_CONFIG, tiny=_TINY, processor=IMAGES)

SPECS: dict[str, Mistral3Spec] = {
    "Mistral-Small-3.1-24B-Instruct-2503": _mistral3(
        like="mistralai/Mistral-Small-3.1-24B-Instruct-2503",
        architecture="Mistral3ForConditionalGeneration",
        dtype="BF16",
    ),
    "Ministral-3-3B-Instruct-2512-BF16": _mistral3(
        like="mistralai/Ministral-3-3B-Instruct-2512-BF16",
        architecture="Mistral3ForConditionalGeneration",
        config={**_CONFIG, "text_config": _TEXT_3B, "tie_word_embeddings": True},
        tiny={**_TINY, "text_config": _TINY_3B},
        dtype="BF16",
    ),
    "mistral3-bare": _mistral3(
        like="save_pretrained",
        architecture="Mistral3Model",
        tiny={**_TINY, **EARLIER_LAYER},
        inert=(*Mistral3Spec.inert, r"vision_tower\.transformer\.layers\.[12]\."),
    ),
}
