"""Chinese-CLIP checkpoints."""

from __future__ import annotations

from typing import Any

from .clip import _IMAGES, _TINY, _VISION
from .common import Spec

_TEXT: dict[str, Any] = {"vocab_size": 21128, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
_TEXT |= {"intermediate_size": 3072, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 2}
_TEXT |= {"layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "pad_token_id": 0}
_VISION_16 = {**_VISION, "patch_size": 16}
_PROCESSOR = {name: value for name, value in _IMAGES.items() if name != "feature_extractor_type"}
_PROCESSOR |= {"image_processor_type": "ChineseCLIPImageProcessor", "size": {"height": 224, "width": 224}}
TINY = {
    "text_config": {**_TEXT, **_TINY, "vocab_size": 900, "max_position_embeddings": 40},
    "vision_config": {**_VISION_16, **_TINY, "hidden_size": 40, "image_size": 24, "patch_size": 8},
    "projection_dim": 32,
}

SPECS = {
    "chinese-clip-vit-base-patch16": Spec(
        like="OFA-Sys/chinese-clip-vit-base-patch16",
        model_type="chinese_clip",
        architecture="ChineseCLIPModel",
        config={
            "projection_dim": 512,
            "logit_scale_init_value": 2.6592,
            "text_config": _TEXT,
            "vision_config": _VISION_16,
        },
        tiny=TINY,
        processor=_PROCESSOR,
        tokenizer="wordpiece",
        full=True,
    ),
}
