"""InternVL checkpoints: in the layout of 3 on the Hub, and with what larger encoders and 3.5's decoders have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from .common import Spec

_HUB = {"model.language_model.": "language_model.model.", "lm_head.": "language_model.lm_head."}
_HUB |= {"model.vision_tower.": "vision_tower.", "model.multi_modal_projector.": "multi_modal_projector."}


@dataclass(frozen=True, kw_only=True)
class InternVLSpec(Spec):
    not_compared = ("image_hidden_states",)

    def file_name(self, name: str) -> str:
        if self.like == "save_pretrained":
            return name
        return next((new + name.removeprefix(old) for old, new in _HUB.items() if name.startswith(old)), name)


_VISION = {"model_type": "internvl_vision", "hidden_size": 1024, "intermediate_size": 4096, "image_size": [448, 448]}
_VISION |= {"num_hidden_layers": 24, "num_attention_heads": 16, "patch_size": [14, 14], "attention_bias": True}
_TEXT = {"model_type": "qwen2", "vocab_size": 151674, "hidden_size": 896, "intermediate_size": 4864}
_TEXT |= {"num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "rope_theta": 1000000.0}
_TEXT |= {"max_position_embeddings": 32768, "bos_token_id": 151643, "eos_token_id": 151645}
_CONFIG: dict[str, Any] = {"text_config": _TEXT, "vision_config": _VISION, "image_token_id": 151667}
_CONFIG |= {"downsample_ratio": 0.5, "projector_hidden_act": "gelu", "image_seq_length": 256}
_CONFIG |= {"vision_feature_layer": -1, "vision_feature_select_strategy": "default"}
_TINY_VISION = {**_VISION, "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 3, "image_size": [32, 32]}
_TINY_VISION |= {"num_attention_heads": 4, "patch_size": [4, 4]}
_TINY_TEXT = {**_TEXT, "vocab_size": 500, "hidden_size": 48, "intermediate_size": 72, "num_hidden_layers": 3}
_TINY_TEXT |= {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 2048}
_TINY_TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
_TINY = {"text_config": _TINY_TEXT, "vision_config": _TINY_VISION, "image_token_id": 490, "image_seq_length": 16}
_LARGE_VISION = {"norm_type": "rms_norm", "use_qk_norm": True, "attention_bias": False, "use_mean_pooling": False}
_IMAGES = {"image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 448, "width": 448}, "resample": 3}
_IMAGES |= {"crop_to_patches": True, "min_patches": 1, "max_patches": 12, "do_convert_rgb": True}
_IMAGES |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}

_internvl = partial(InternVLSpec, model_type="internvl", config=_CONFIG, tiny=_TINY, processor=_IMAGES)

SPECS: dict[str, Spec] = {
    "InternVL3-1B-hf": _internvl(
        like="OpenGVLab/InternVL3-1B-hf", architecture="InternVLForConditionalGeneration", dtype="BF16", full=True
    ),
    "InternVL3-bare": _internvl(
        like="save_pretrained",
        architecture="InternVLModel",
        tiny={
            **_TINY,
            "text_config": {**_TINY_TEXT, "model_type": "qwen3", "head_dim": 16},
            "vision_config": {**_TINY_VISION, **_LARGE_VISION},
        },
        processor={**_IMAGES, "max_patches": 4},
    ),
}
