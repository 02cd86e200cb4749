"""LLaVA checkpoints: in the layout of 1.5 on the Hub, and with the class token of another layer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from .common import Spec

_HUB = {"model.language_model.": "language_model.model.", "lm_head.": "language_model.lm_head."}
_HUB |= {"model.vision_tower.": "vision_tower.vision_model.", "model.multi_modal_projector.": "multi_modal_projector."}


@dataclass(frozen=True, kw_only=True)
class LlavaSpec(Spec):
    not_compared = ("image_hidden_states",)

    def file_name(self, name: str) -> str:
        if self.like == "save_pretrained":
            return name
        return next((new + name.removeprefix(old) for old, new in _HUB.items() if name.startswith(old)), name)


_VISION = {"model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, "image_size": 336}
_VISION |= {"num_hidden_layers": 24, "num_attention_heads": 16, "patch_size": 14, "projection_dim": 768}
_TEXT = {"model_type": "llama", "vocab_size": 32064, "hidden_size": 4096, "intermediate_size": 11008}
_TEXT |= {"num_hidden_layers": 32, "num_attention_heads": 32, "rms_norm_eps": 1e-5, "max_position_embeddings": 4096}
_TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 32001, "tie_word_embeddings": False}
_CONFIG: dict[str, Any] = {"text_config": _TEXT, "vision_config": _VISION, "image_token_index": 32000}
_CONFIG |= {"projector_hidden_act": "gelu", "vision_feature_layer": -2, "vision_feature_select_strategy": "default"}
_TINY_VISION = {**_VISION, "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 3, "image_size": 32}
_TINY_VISION |= {"num_attention_heads": 4, "patch_size": 8}
_TINY_TEXT = {**_TEXT, "vocab_size": 500, "hidden_size": 48, "intermediate_size": 72, "num_hidden_layers": 3}
_TINY_TEXT |= {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 2}
_TINY = {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "image_token_index": 490}
_IMAGES = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 336}, "crop_size": 336}
_IMAGES |= {"do_center_crop": True, "resample": 3, "image_mean": [0.48145466, 0.4578275, 0.40821073]}
_IMAGES |= {"image_std": [0.26862954, 0.26130258, 0.27577711]}

# What comes after the layer that is read.
_INERT = (*Spec.inert, r"vision_tower\.(vision_model\.)?(encoder\.layers\.2|post_layernorm)\.")
_llava = partial(LlavaSpec, model_type="llava", config=_CONFIG, tiny=_TINY, processor=_IMAGES, inert=_INERT)

SPECS: dict[str, Spec] = {
    "llava-1.5-7b-hf": _llava(
        like="llava-hf/llava-1.5-7b-hf", architecture="LlavaForConditionalGeneration", dtype="F16"
    ),
    "llava-full": _llava(
        like="save_pretrained",
        architecture="LlavaForConditionalGeneration",
        tiny={**_TINY, "vision_feature_layer": -1, "vision_feature_select_strategy": "full"},
        inert=(*Spec.inert, r"post_layernorm\."),
    ),
    "llava-bare": _llava(like="save_pretrained", architecture="LlavaModel"),
}
